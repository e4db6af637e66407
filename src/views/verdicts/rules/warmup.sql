-- threshold: 0.05
-- weight: 0.6
-- needs: trace.steps
-- sentence: Warm-up is part of this measurement: the first steps take {won} more than usual,
--     {share} of step time.
-- evidence: {count} warm-up step{s}; the slowest takes {a}, a median step {b}
-- advice: warm up before the loop (compile, fill caches), and exclude the first steps from
--     comparisons
-- tab: timeline
-- query: SELECT step, duration_ns FROM trace.steps ORDER BY start_ns LIMIT 20
--
-- The time above the median in the first twentieth of the steps (1 to 10 of them), of which one
-- takes three times as long as usual. If the main thread had no core for a larger part of these
-- steps than of the others, they are taken as shorter by the difference. The place is the function
-- with most of the samples in them.
WITH s AS (
    FROM {include numbered_steps}
), v AS (
    FROM {include step_samples steps=s}
), w AS (
    SELECT place, weight
    FROM v
    WHERE n <= warm
), r AS (
    SELECT
        greatest(
            coalesce(
                sum(weight) FILTER (doing = 'ready' AND n <= warm)
                    / nullif(sum(weight) FILTER (n <= warm), 0)
                - coalesce(
                    sum(weight) FILTER (doing = 'ready' AND n > warm)
                        / nullif(sum(weight) FILTER (n > warm), 0),
                    0
                ),
                0
            ),
            0
        ) AS starved
    FROM v
), p AS (
    FROM {include top_place from=w}
)
SELECT
    sum(greatest(duration_ns * (1 - (SELECT starved FROM r)) - usual, 0)) FILTER (n <= warm),
    sum(duration_ns),
    '',
    any_value(warm),
    max(duration_ns) FILTER (n <= warm),
    any_value(usual),
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM s
HAVING count(*) >= 10
    AND max(duration_ns) FILTER (n <= warm) * (1 - (SELECT starved FROM r)) > 3 * any_value(usual)
