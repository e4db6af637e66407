-- threshold: 0.20
-- weight: 0.5
-- least_s: 1
-- sentence: More threads are ready to run than there are cores: for {share} of the run some thread
--     waited for a core.
-- evidence: the program was preempted {count} time{s}
-- advice: start fewer threads (OMP_NUM_THREADS, loader workers), or run fewer other programs
-- tab: metrics
-- query: SELECT ts_ns, busy_pct, pressure_pct FROM host.cpu WHERE cpu IS NULL
--
-- The pressure is that of the whole machine. The program itself causes it if the mean number of
-- its threads that run or wait for a core exceeds the number of cores. Otherwise other programs
-- hold the cores, and no change to this one helps.
SELECT
    {run_ns} * least(p.pressure, 100) / 100,
    {run_ns},
    '',
    h.switches,
    0,
    0
FROM (
    SELECT
        avg(pressure_pct) FILTER (cpu IS NULL) AS pressure,
        avg(busy_pct) FILTER (cpu IS NULL) AS busy,
        count(*) FILTER (cpu IS NULL) AS n,
        count(DISTINCT cpu) AS cores
    FROM host.cpu
) p, (
    SELECT count(*) AS seen
    FROM host.threads
    WHERE state = 'running'
) t, (
    SELECT
        max(involuntary_switches) - min(involuntary_switches) AS switches,
        (max(ts_ns) - min(ts_ns)) / 1e9 AS s
    FROM host.process
    GROUP BY pid
    ORDER BY max(rss_bytes) DESC
    LIMIT 1
) h
WHERE p.n >= 3
    AND p.busy > 90
    AND h.switches > 50 * h.s
    AND t.seen > p.cores * p.n
