-- threshold: 0.05
-- weight: 0.6
-- sentence: Warm-up is part of this measurement: the first steps take {won} more than usual,
--     {share} of step time.
-- evidence: {count} warm-up step{s}; the slowest takes {a}, a median step {b}
-- advice: warm up before the loop (compile, fill caches), and exclude the first steps from
--     comparisons
-- tab: timeline
-- query: SELECT step, duration_ns FROM trace.steps ORDER BY start_ns LIMIT 20
--
-- The time above the median in the first twentieth of the steps (1 to 10 of them), without that in
-- which the main thread had no core. The place is the function with most of the samples in them.
WITH s AS (
    FROM {include numbered_steps}
), v AS (
    FROM {include step_samples steps=s}
), w AS (
    SELECT place, weight, doing
    FROM v
    WHERE n <= warm
), r AS (
    SELECT coalesce(sum(weight) FILTER (doing = 'ready'), 0) AS ready_ns
    FROM w
), p AS (
    FROM {include top_place from=w}
)
SELECT
    sum(greatest(duration_ns - usual, 0)) FILTER (n <= warm) - (SELECT ready_ns FROM r),
    sum(duration_ns),
    '',
    any_value(warm),
    max(duration_ns) FILTER (n <= warm),
    any_value(usual),
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM s
HAVING count(*) >= 10
    AND max(duration_ns) FILTER (n <= warm) - (SELECT ready_ns FROM r) > 3 * any_value(usual)
