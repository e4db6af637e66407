-- threshold: 0.25
-- weight: 0.5
-- sentence: Many tiny operations take much of the time: {count} calls of {a} each take {share} of
--     the run.
-- evidence: [mostly {which}; ]a call costs about as much as the work it does
-- advice: do more in each call: larger batches, fused operations, vectorised code, torch.compile
-- tab: flame
-- query: FROM trace.regions WHERE mean_ns < 20000 ORDER BY count DESC
--
-- Regions of at least 2,000 calls below 20 µs each that call little else, in all processes.
-- The costliest is named with its own number of calls.
WITH t AS (
    SELECT
        {include region_label} AS label,
        sum(count)::BIGINT AS n,
        sum(total_ns) AS ns,
        any_value(name || ' (' || file || ':' || line || ')')
            FILTER (contains(file, '/') AND line > 0) AS place
    FROM trace.regions
    GROUP BY name, source
    HAVING n >= 2000 AND ns < 20000 * n AND sum(self_ns) > 0.8 * ns
)
SELECT
    sum(ns),
    greatest({run_ns}, sum(ns)),
    arg_max(label, ns),
    sum(n),
    sum(ns) / sum(n),
    0,
    arg_max(label, ns) || ' (' || format('{:,}', arg_max(n, ns)) || ' calls)',
    arg_max(place, ns) AS place,
    max(ns) / sum(ns) AS place_share
FROM t
