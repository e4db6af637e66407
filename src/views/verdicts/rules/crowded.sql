-- threshold: 0.20
-- weight: 0.15
-- least_s: 1
-- sentence: Thread {name} was ready to run but had no core for {share} of the run: {which} use the
--     cores.
-- evidence: the program used {a} of CPU time and was preempted {count} time{s}
-- advice: start fewer threads (OMP_NUM_THREADS, loader workers), or run fewer other programs
-- tab: metrics
-- query: SELECT tid, thread, max(cpu_ns), max(run_delay_ns) FROM host.threads GROUP BY ALL
--
-- The thread that waited longest for a core. The program crowds itself if more of its threads run
-- or are ready to run than the machine has cores. The weight is low: what the program itself does
-- with its time comes first, also on a machine that others use. A control group's limit has a
-- verdict of its own (throttled).
WITH t AS (
    SELECT
        coalesce(nullif(first(thread), ''), tid::VARCHAR) AS thread,
        max(run_delay_ns) - min(run_delay_ns)
        + least(min(run_delay_ns), greatest(min(ts_ns), 0)) AS delay_ns
    FROM host.threads
    GROUP BY pid, tid
), u AS (
    SELECT
        greatest(sum(cpu_ns), max(tree_cpu_ns)) AS cpu_ns,
        sum(run_delay_ns) AS delay_ns,
        sum(switches) AS switches
    FROM {include process_use}
)
SELECT
    least(t.delay_ns, {run_ns}),
    {run_ns},
    thread,
    switches,
    cpu_ns,
    0,
    CASE
        WHEN cpu_ns + u.delay_ns > {run_ns} * (SELECT count(DISTINCT cpu) FROM host.cpu)
            THEN 'its own threads'
        ELSE 'other programs'
    END
FROM t, u
WHERE t.delay_ns > 2 * (
    SELECT coalesce(max(throttled_ns) - min(throttled_ns), 0)
    FROM host.cgroup
)
ORDER BY t.delay_ns DESC
LIMIT 1
