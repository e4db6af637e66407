-- threshold: 0.60
-- weight: 0.2
-- least_s: 2
-- sentence: The program mostly waits: it used no CPU for {share} of the run.
-- evidence: {a} of CPU time in {whole}
-- advice: find what it waits for: I/O, a lock, a device or another process; kymo backtrace shows
--     the last stacks, and while it runs kymo backtrace --why {pid} shows what it waits for
-- tab: metrics
-- query: SELECT ts_ns, processes, cpu_pct FROM host.program
--
-- All processes of the program together. Time in which a thread was ready to run but had no core is
-- not waiting; crowded is the verdict for it.
SELECT
    {run_ns} - least({run_ns}, greatest(sum(cpu_ns), max(tree_cpu_ns)) + sum(run_delay_ns)),
    {run_ns},
    '',
    sum(n),
    greatest(sum(cpu_ns), max(tree_cpu_ns)),
    arg_max(pid, rss_bytes)
FROM {include process_use}
HAVING sum(n) >= 3
