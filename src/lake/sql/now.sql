-- kymo.now: what each process does now: its last step, its innermost open zone, its losses.
WITH
zones AS (
    SELECT host, pid, arg_max(name, depth) AS zone, arg_max(start_ns, depth) AS since_ns
    FROM trace.open_zones
    WHERE tid = pid
    GROUP BY host, pid
),
steps AS (
    SELECT host, pid, max(step) AS step
    FROM trace.steps
    GROUP BY host, pid
),
losses AS (
    SELECT host, pid, sum(overwritten + dropped)::BIGINT AS lost
    FROM kymo.streams
    GROUP BY host, pid
)
SELECT
    p.rank,
    p.host,
    p.pid,
    p.state,
    s.step,
    z.zone,
    z.since_ns,
    p.ended_ns AS ts_ns,
    coalesce(l.lost, 0) AS lost,
    epoch_ns(now()) AS written_unix_ns
FROM kymo.processes p
LEFT JOIN zones z ON z.host = p.host AND z.pid = p.pid
LEFT JOIN steps s ON s.host = p.host AND s.pid = p.pid
LEFT JOIN losses l ON l.host = p.host AND l.pid = p.pid
