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
-- The time above the median in the first twentieth of the steps (1 to 10 of them).
SELECT
    sum(greatest(duration_ns - usual, 0)) FILTER (n <= warm),
    sum(duration_ns),
    '',
    any_value(warm),
    max(duration_ns) FILTER (n <= warm),
    any_value(usual)
FROM {include numbered_steps}
HAVING count(*) >= 10 AND max(duration_ns) FILTER (n <= warm) > 3 * any_value(usual)
