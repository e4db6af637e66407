-- threshold: 0.05
-- weight: 1.0
-- sentence: The CPU limit slows the program: its cgroup was throttled for {share} of the run
--     ({won}).
-- evidence: throttled {count} time{s}[, cgroup {name}]
-- advice: raise the CPU limit of the cgroup, or start fewer threads (OMP_NUM_THREADS)
-- tab: metrics
-- query: FROM host.cgroup
--
-- The cgroup of the program that was throttled longest. The place is the function that uses most of
-- the CPU time, which the limit is about.
WITH s AS (
    SELECT place, weight
    FROM {include sampled_threads}
    WHERE state = 'R' AND NOT {include in_import}
), p AS (
    FROM {include top_place from=s}
)
SELECT
    least(max(throttled_ns) - min(throttled_ns), {run_ns}),
    {run_ns},
    path,
    max(throttled_count) - min(throttled_count),
    0,
    0,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM host.cgroup
GROUP BY path
ORDER BY 1 DESC
LIMIT 1
