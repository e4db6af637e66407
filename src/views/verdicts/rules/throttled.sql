-- threshold: 0.05
-- weight: 1.0
-- sentence: The CPU limit slows the program: its cgroup was throttled for {share} of the run
--     ({won}).
-- evidence: throttled {count} time{s}[, cgroup {name}]
-- advice: raise the CPU limit of the cgroup, or start fewer threads (OMP_NUM_THREADS)
-- tab: metrics
-- query: FROM host.cgroup
--
-- The cgroup of the program that was throttled longest.
SELECT
    least(max(throttled_ns) - min(throttled_ns), {run_ns}),
    {run_ns},
    path,
    max(throttled_count) - min(throttled_count),
    0,
    0
FROM host.cgroup
GROUP BY path
ORDER BY 1 DESC
LIMIT 1
