-- threshold: 0.25
-- weight: 0.5
-- sentence: Many tiny operations take much of the time: {count} calls of {a} each take {share} of
--     the run.
-- evidence: [mostly {name}; ]a call costs about as much as the work it does
-- advice: do more in each call: larger batches, fused operations, vectorised code, torch.compile
-- tab: flame
-- query: FROM trace.regions WHERE mean_ns < 20000 ORDER BY count DESC
--
-- Regions of at least 2,000 calls below 20 µs each that call little else.
SELECT
    sum(total_ns),
    {run_ns},
    arg_max(name, total_ns),
    sum(count),
    sum(total_ns) / sum(count),
    0
FROM trace.regions
WHERE count >= 2000 AND mean_ns < 20000 AND self_ns > 0.8 * total_ns
