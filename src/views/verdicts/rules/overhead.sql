-- threshold: 0.05
-- weight: 1.0
-- least_s: 1
-- sentence: Recording itself is costly: it takes {share} of the run ({won} of {whole}).
-- evidence: {count} rows were recorded
-- advice: mark fewer or larger zones
-- tab: streams
-- query: FROM kymo.overhead
--
-- The cost inside the program. The collector and the sampler run in a process of their own.
SELECT
    sum(total_ns),
    {run_ns},
    '',
    sum(events),
    0,
    0
FROM kymo.overhead
WHERE source NOT IN ('collector', 'sampler')
