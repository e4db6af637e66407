-- threshold: 0.05
-- weight: 1.0
-- least_s: 1
-- sentence: Recording itself is costly: it takes {share} of the run ({won} of {whole})[, mostly for
--     zones of {name}].
-- evidence: {count} rows were recorded
-- advice: mark fewer or larger zones
-- tab: streams
-- query: FROM kymo.overhead
--
-- The cost inside the program. The collector and the sampler run in a process of their own. The
-- name and the place are those of the region whose zones cost most to record.
WITH r AS (
    SELECT
        {include region_label} AS label,
        any_value(name || ' (' || file || ':' || line || ')')
            FILTER (contains(file, '/') AND line > 0) AS place,
        sum(own_cost_ns) AS cost_ns,
        cost_ns / sum(cost_ns) OVER () AS share
    FROM trace.regions
    GROUP BY name, source
    ORDER BY cost_ns DESC NULLS LAST
    LIMIT 1
)
SELECT
    sum(total_ns),
    {run_ns},
    (SELECT label FROM r WHERE cost_ns > 0),
    sum(events),
    0,
    0,
    (SELECT place FROM r) AS place,
    (SELECT share FROM r) AS place_share
FROM kymo.overhead
WHERE source NOT IN ('collector', 'sampler', 'native')
