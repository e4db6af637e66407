-- The costliest regions by self time, without garbage collections. If several processes have a
-- region, its quantiles are those of the process with the most calls.
SELECT
    {include region_label},
    source,
    sum(count),
    sum(self_ns) AS self_ns,
    sum(total_ns),
    arg_max(p50_ns, count),
    arg_max(p99_ns, count),
    count(*) OVER (),
    sum(own_cost_ns),
    bool_or(contains(file, '{FACTS_IMPORT_FILE}'))::INT
FROM {include regions}
WHERE count > 0 AND NOT coalesce(starts_with(name, '{FACTS_GC}'), false)
GROUP BY name, source
ORDER BY self_ns DESC, name
LIMIT {FACTS_REGIONS}
