-- threshold: 0.10
-- weight: 1.0
-- sentence: Data loading holds up training: it takes {share} of step time ({won} of {whole}).
-- evidence: median wait {a} per step, mean {b} in the slowest 2 %
-- advice: use more loader workers, or prefetch; at most {share} to gain
-- tab: timeline
-- query: SELECT step, data_ns, duration_ns FROM trace.steps ORDER BY data_ns DESC
--
-- The time of the data phase of all steps. The evidence compares the median step with the slowest
-- 2 %: a large difference points at stalls, an equal share at a loader that is too slow throughout.
SELECT
    sum(data_ns),
    sum(duration_ns),
    '',
    count(*),
    median(data_ns),
    avg(data_ns) FILTER (duration_ns >= slow)
FROM (
    SELECT *, quantile_cont(duration_ns, 0.98) OVER () AS slow
    FROM {include steps}
)
