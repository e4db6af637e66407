-- threshold: 0.20
-- weight: 0.5
-- least_s: 1
-- sentence: No progress for {won}, {share} of the run; the innermost open zone is {name}.
-- evidence: it has been open for {a}; {count} open zone{s} in total
-- advice: while it runs, kymo backtrace --why {pid} shows what it waits for; kymo backtrace shows
--     the last stacks
-- zones_if: waits_long
-- tab: timeline
-- query: FROM trace.open_zones
--
-- A hang: no process has begun or ended a zone for a while, and some are inside zones. Processes
-- that ended by themselves do not count. Without any ended zone or step, a program that computes
-- (50 % of a core or more) works inside a zone that surrounds everything. A recording has many
-- zones: they are read only if the open ones began long ago.
WITH o AS (
    SELECT z.*, start_ns + age_ns AS until
    FROM trace.open_zones z
    SEMI JOIN (SELECT host, pid FROM kymo.processes WHERE state <> 'ended') USING (host, pid)
    WHERE age_ns IS NOT NULL
), n AS (
    SELECT max(until) AS now, max(start_ns) AS began, count(*) AS n
    FROM o
    HAVING now - began > 0.1 * {run_ns}
), e AS (
    SELECT max(ended) AS ended
    FROM (
        SELECT max(start_ns + duration_ns) AS ended
        FROM {zones} AS all_zones
        SEMI JOIN (SELECT host, pid FROM kymo.processes, n) USING (host, pid)
        UNION ALL
        SELECT max(start_ns + duration_ns)
        FROM trace.steps
    )
), w AS (
    SELECT avg(cpu_pct) AS pct
    FROM (FROM host.process SEMI JOIN o USING (host, pid)), n
    WHERE ts_ns >= began
)
SELECT
    now - greatest(began, coalesce(ended, 0)),
    {run_ns},
    coalesce(name, 'a zone'),
    n,
    age_ns,
    pid,
    (
        SELECT arg_max(place, ts_ns)
        FROM python.samples AS p
        WHERE p.host = o.host AND p.pid = o.pid AND p.tid = o.tid AND place IS NOT NULL
    ) AS place
FROM o, n, e, w
WHERE ended IS NOT NULL OR coalesce(pct, 0) < 50
ORDER BY until < now - 1e9, tid <> pid, tid, depth DESC
LIMIT 1
