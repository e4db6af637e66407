-- threshold: 0.10
-- weight: 0.45
-- needs: trace.steps
-- sentence: {name} takes {share} of step time ({won} of {whole}), outside of modules and data
--     loading.
-- evidence: {count} samples of the main thread within steps
-- advice: make it cheaper, call it less often, or move it out of the step
-- zones_if: has_data
-- tab: flame?of=samples
-- query: SELECT place, sum(weight_ns) FROM python.samples GROUP BY 1 ORDER BY 2 DESC
--
-- The function of the program's own code with most of the samples of the main thread within usual
-- steps; the first ones and slow ones have verdicts of their own (warmup, spread).
-- Not the function that has the loop, which is in nearly all stacks of steps, not a forward, which
-- stands for its modules, not what torch's loader calls, what is in a data phase, or a wait for
-- other ranks. A sample of a thread that was ready but had no core counts as much as the median one
-- at most: on a busy machine some long waits for a core may all be in one small function.
WITH s AS (
    SELECT *
    FROM {include numbered_steps}
    WHERE n > warm AND duration_ns <= 2 * usual
), z AS (
    SELECT host, pid, tid, start_ns, duration_ns
    FROM {zones} AS all_zones
    WHERE name = 'data'
), v AS (
    SELECT
        place,
        least(weight, CASE doing WHEN 'ready' THEN median(weight) OVER () END) AS weight,
        array_to_string(stack, ';') AS stack,
        host,
        pid,
        tid,
        ts_ns,
        doing
    FROM {include step_samples steps=s}
), o AS (
    SELECT v.*, coalesce(v.ts_ns < z.start_ns + z.duration_ns, false) AS in_data
    FROM v
    ASOF LEFT JOIN z
        ON v.host = z.host AND v.pid = z.pid AND v.tid = z.tid AND v.ts_ns >= z.start_ns
), f AS (
    SELECT
        mode(place) AS place,
        regexp_extract(mode(place), '^(.*):[0-9]+\)$', 1) AS head,
        sum(weight) AS weight,
        count(*) AS n
    FROM o
    WHERE place IS NOT NULL
        AND NOT in_data
        AND doing <> 'collective'
        AND NOT contains(stack, '/torch/utils/data/')
        AND NOT regexp_matches(place, '^(<module>|([^ ]*\.)?(forward|__call__|__init__)) \(')
    GROUP BY {include place_function}
    ORDER BY weight DESC
    LIMIT 4
), c AS (
    SELECT f.*, (SELECT sum(weight) FROM v WHERE contains(v.stack, f.head)) AS under
    FROM f
)
SELECT
    (SELECT sum(duration_ns) FROM s) * c.weight / (SELECT sum(weight) FROM v),
    (SELECT sum(duration_ns) FROM s),
    {include place_name},
    c.n,
    0,
    0,
    place,
    c.weight / (SELECT sum(weight) FROM v) AS place_share
FROM c
WHERE under < 0.9 * (SELECT sum(weight) FROM v) AND c.n >= 10
ORDER BY c.weight DESC
LIMIT 1
