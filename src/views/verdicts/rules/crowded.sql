-- threshold: 0.20
-- weight: 0.15
-- least_s: 1
-- sentence: Thread {name} was ready to run but had no core for {share} of the run: {which}.
-- evidence: the program used {a} of CPU time and was preempted {count} time{s}
-- advice: start fewer threads (OMP_NUM_THREADS, loader workers), or run fewer other programs
-- tab: metrics
-- query: SELECT tid, thread, max(cpu_ns), max(run_delay_ns) FROM host.threads GROUP BY ALL
--
-- The thread that waited longest for a core, and the function that it was in. The program crowds
-- itself if more of its threads run or are ready to run than the machine has cores, and they have
-- a good part of the CPU time of the machine. That counts from two and a half threads for each core
-- on: a few more threads than cores compute as much as one for each. Other programs are named as
-- the collector has found them.
-- The weight is low: what the program itself does with its time comes first, also on a machine that
-- others use. A control group's limit has a verdict of its own (throttled).
WITH t AS (
    SELECT
        host,
        pid,
        tid,
        coalesce(nullif(first(thread), ''), tid::VARCHAR) AS thread,
        max(run_delay_ns) - min(run_delay_ns)
        + least(min(run_delay_ns), greatest(min(ts_ns), 0)) AS delay_ns
    FROM host.threads
    GROUP BY host, pid, tid
), u AS (
    SELECT
        greatest(sum(cpu_ns), max(tree_cpu_ns)) AS cpu_ns,
        sum(run_delay_ns) AS delay_ns,
        sum(switches) AS switches
    FROM {include process_use}
), c AS (
    SELECT
        greatest(count(DISTINCT cpu), 1) AS cores,
        coalesce(avg(busy_pct) FILTER (cpu IS NULL) / 100, 1) * cores * {run_ns} AS busy_ns
    FROM host.cpu
), o AS (
    SELECT mode(text) AS text
    FROM trace.marks
    WHERE name = 'cores used by others'
), l AS (
    SELECT *
    FROM t
    ORDER BY delay_ns DESC
    LIMIT 1
), r AS (
    SELECT place, weight
    FROM {include weighted_samples}
    SEMI JOIN l USING (host, pid, tid)
    WHERE doing = 'ready' AND NOT {include in_import}
    UNION ALL
    SELECT place, weight
    FROM {include native_threads}
    SEMI JOIN l USING (host, pid, tid)
    WHERE doing = 'running'
), p AS (
    FROM {include top_place from=r}
)
SELECT
    least(t.delay_ns, {run_ns}),
    {run_ns},
    thread,
    switches,
    cpu_ns,
    0,
    CASE
        WHEN own THEN 'its own threads use the cores'
        ELSE 'other programs use the cores' || coalesce(', mostly ' || (SELECT text FROM o), '')
    END,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share,
    CASE WHEN NOT own THEN 0.02 END AS weight,
    CASE
        WHEN own THEN 'start fewer threads or processes (OMP_NUM_THREADS, loader workers)'
        ELSE 'measure again while the machine is free'
    END AS advice
FROM (
    SELECT
        *,
        cpu_ns + delay_ns > 1.1 * {run_ns} * cores AND cpu_ns > 0.3 * busy_ns AS own,
        cpu_ns + delay_ns > 2.5 * {run_ns} * cores AS many
    FROM u, c
) AS u, l AS t
WHERE (many OR NOT own) AND t.delay_ns > 2 * (
    SELECT coalesce(max(throttled_ns) - min(throttled_ns), 0)
    FROM host.cgroup
)
