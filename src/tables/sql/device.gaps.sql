-- Spans in which a queue had nothing to do, and why.
--
-- start_ns     BIGINT   when the queue had nothing to do any more
-- duration_ns  BIGINT   until it began the next operation
-- cause        VARCHAR  host late, synchronisation, dependency or launch
-- device       VARCHAR  the device
-- queue        VARCHAR  the queue or stream
-- next         VARCHAR  the operation that ended it
-- pid          INTEGER  the process
SELECT
    free_ns AS start_ns,
    gap_ns AS duration_ns,
    cause,
    device,
    queue,
    name AS next,
    pid
FROM (WITH work AS MATERIALIZED (SELECT pid, device, queue, core, thread_id, name, flags, start_ns,
        greatest(end_ns, start_ns) AS end_ns, CASE WHEN (flags & 256) > 0 THEN queued_ns END AS
        queued_ns FROM kymo_scan('device.ops') WHERE kind < 12 AND kind NOT IN (8, 9) AND (flags &
        3072) = 3072), placed AS MATERIALIZED (SELECT *, max(end_ns) OVER (PARTITION BY pid,
        device, queue ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        AS free_ns FROM work), gaps AS MATERIALIZED (SELECT * FROM placed WHERE start_ns >
        free_ns), waits AS MATERIALIZED (SELECT pid, thread_id, start_ns AS wait_ns, end_ns AS
        waited_ns FROM kymo_scan('device.ops') WHERE kind = 13), caused AS MATERIALIZED (SELECT
        g.*, g.start_ns - g.free_ns AS gap_ns, CASE WHEN g.queued_ns - g.free_ns < g.start_ns -
        g.queued_ns AND (g.flags & 1) > 0 THEN 'dependency' WHEN g.queued_ns - g.free_ns <
        g.start_ns - g.queued_ns THEN 'launch' WHEN w.waited_ns >= g.free_ns AND w.wait_ns <=
        g.free_ns AND g.queued_ns - w.waited_ns <= (g.start_ns - g.free_ns) / 2 THEN
        'synchronisation' ELSE 'host late' END AS cause FROM gaps g ASOF LEFT JOIN waits w ON g.pid
        = w.pid AND g.thread_id = w.thread_id AND g.queued_ns >= w.waited_ns) SELECT * FROM caused
        ORDER BY free_ns)
