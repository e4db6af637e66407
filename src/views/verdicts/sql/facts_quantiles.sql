-- Exact quantiles of those of the costliest regions that have no histogram, in one scan. label and
-- source are those of facts_regions.sql.
WITH r AS MATERIALIZED (
    SELECT *
    FROM {include regions}
    WHERE count > 0 AND NOT coalesce(starts_with(name, '{FACTS_GC}'), false)
), top AS (
    SELECT
        name,
        source,
        {include region_label} AS label,
        sum(self_ns) AS self_ns,
        arg_max(p50_ns, count) AS p50_ns
    FROM r
    GROUP BY name, source
    ORDER BY self_ns DESC, name
    LIMIT {FACTS_REGIONS}
), unknown AS (
    SELECT DISTINCT r.bare_name, r.source, r.file, t.label
    FROM r
    JOIN top t ON t.name = r.name AND t.source = r.source
    WHERE t.p50_ns IS NULL
)
SELECT
    u.label,
    u.source,
    quantile_disc(z.duration_ns, 0.5),
    quantile_disc(z.duration_ns, 0.99)
FROM trace.zones z
JOIN unknown u
    ON z.name = u.bare_name AND z.source = u.source AND z.file IS NOT DISTINCT FROM u.file
GROUP BY u.label, u.source
