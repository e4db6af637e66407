-- threshold: 0.60
-- weight: 0.2
-- least_s: 2
-- sentence: The program mostly waits: it used no CPU for {share} of the run[, mostly in {name}].
-- evidence: {a} of CPU time in {whole}
-- advice: find what it waits for: I/O, a lock, a device or another process; kymo backtrace shows
--     the last stacks, and while it runs kymo backtrace --why {pid} shows what it waits for
-- tab: metrics
-- query: SELECT ts_ns, processes, cpu_pct FROM host.program
--
-- All processes of the program together. Time in which a thread was ready to run but had no core is
-- not waiting; crowded is the verdict for it. The function is that of the main thread, if most of
-- its samples that do not run are there.
WITH f AS (
    SELECT
        {include place_label} AS label,
        sum(weight) AS time,
        sum(sum(weight)) OVER () AS whole,
        sum(count(*)) OVER () AS total
    FROM {include weighted_samples}
    WHERE tid = pid AND state <> 'R' AND place IS NOT NULL
    GROUP BY {include place_function}
    QUALIFY time > 0.5 * whole AND total >= 5
    ORDER BY time DESC
    LIMIT 1
)
SELECT
    {run_ns} - least({run_ns}, greatest(sum(cpu_ns), max(tree_cpu_ns)) + sum(run_delay_ns)),
    {run_ns},
    (SELECT label FROM f),
    sum(n),
    greatest(sum(cpu_ns), max(tree_cpu_ns)),
    arg_max(pid, rss_bytes)
FROM {include process_use}
HAVING sum(n) >= 3
