-- threshold: 0.10
-- weight: 0.9
-- least_s: 1
-- sentence: Memory is read back from storage: {count} major page fault{s}, about {won} of waiting.
-- evidence: at 0.2 ms per fault; caused by swapping, or by the first read of mapped files
-- advice: use less memory (smaller batches, fewer workers), or a machine with more
-- tab: memory
-- query: SELECT ts_ns, pid, major_faults FROM host.process
--
-- More than 200 major page faults a second in one process. The time is an estimate: the kernel
-- does not report how long each fault takes.
SELECT
    least({run_ns}, f * 2e5),
    {run_ns},
    '',
    f,
    0,
    0
FROM (
    SELECT
        max(major_faults) - min(major_faults) AS f,
        (max(ts_ns) - min(ts_ns)) / 1e9 AS s
    FROM host.process
    GROUP BY pid
    ORDER BY 1 DESC
    LIMIT 1
)
WHERE f > 200 * s
