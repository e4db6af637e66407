-- threshold: 0.60
-- weight: 0.2
-- least_s: 2
-- sentence: The program mostly waits: it used no CPU for {share} of the run.
-- evidence: {a} of CPU time in {whole}
-- advice: find what it waits for: I/O, a lock, a device, or a core that others hold; kymo backtrace
--     shows the last stacks, and while it runs kymo backtrace --why {pid} shows what it waits for
-- tab: metrics
-- query: SELECT ts_ns, pid, cpu_pct FROM host.process
--
-- The process with the most memory, by its mean CPU usage.
SELECT
    {run_ns} * (1 - avg(cpu_pct) / 100),
    {run_ns},
    '',
    count(*),
    avg(cpu_pct) * {run_ns} / 100,
    pid
FROM host.process
GROUP BY pid
HAVING count(*) >= 3
ORDER BY max(rss_bytes) DESC
LIMIT 1
