-- The costliest regions. Quantiles are those of the process with the most calls.
SELECT
    name,
    source,
    sum(count) AS count,
    sum(self_ns) AS self_ns,
    sum(total_ns) AS total_ns,
    min(min_ns) AS min_ns,
    max(max_ns) AS max_ns,
    arg_max(p50_ns, count) AS p50_ns,
    arg_max(p90_ns, count) AS p90_ns,
    arg_max(p99_ns, count) AS p99_ns
FROM {include regions}
WHERE count > 0
GROUP BY name, source
ORDER BY self_ns DESC, name
LIMIT 500
