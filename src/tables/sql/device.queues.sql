-- How busy the queues of devices were, and why not.
--
-- device          VARCHAR  the device
-- queue           VARCHAR  the queue or stream
-- busy_ns         BIGINT   time with an operation running
-- idle_ns         BIGINT   time without, from the device's first operation to its last, of any
--         queue
-- utilisation     DOUBLE   busy by both, 0 to 1
-- overlap         DOUBLE   share of busy time that other queues of the device were busy too
-- ops             BIGINT   operations; markers and barriers are none
-- gaps            BIGINT   spans between its operations in which nothing ran
-- longest_gap_ns  BIGINT   the longest of them
-- host_late_ns    BIGINT   of those, time in which the host had queued nothing
-- sync_ns         BIGINT   time in which it had not, since it had waited for the device
-- dependency_ns   BIGINT   time in which what was queued waited for other operations
-- launch_ns       BIGINT   time that device and driver took to begin what was queued
-- p50_ns          BIGINT   the median operation
-- first_ns        BIGINT   when its first operation began
-- last_ns         BIGINT   when its last one ended
-- core            INTEGER  the core, or the queue's number in order of creation
-- pid             INTEGER  the process
SELECT
    device,
    queue,
    busy_ns,
    idle_ns,
    utilisation,
    overlap,
    ops,
    gaps,
    longest_gap_ns,
    host_late_ns,
    sync_ns,
    dependency_ns,
    launch_ns,
    p50_ns,
    first_ns,
    last_ns,
    core,
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
        = w.pid AND g.thread_id = w.thread_id AND g.queued_ns >= w.waited_ns) , islands AS
        MATERIALIZED (SELECT pid, device, queue, min(start_ns) AS start_ns, max(end_ns) AS end_ns
        FROM (SELECT *, sum((start_ns > coalesce(free_ns, start_ns - 1))::INT) OVER (PARTITION BY
        pid, device, queue ORDER BY start_ns, end_ns) AS island FROM placed) GROUP BY pid, device,
        queue, island), points AS (SELECT device, t, sum(d) AS d FROM (SELECT device, start_ns AS
        t, 1 AS d FROM islands UNION ALL SELECT device, end_ns, -1 FROM islands) GROUP BY device,
        t), spans AS (SELECT device, t, CASE WHEN sum(d) OVER w > 1 THEN lead(t) OVER w - t ELSE 0
        END AS both_ns FROM points WINDOW w AS (PARTITION BY device ORDER BY t)), together AS
        MATERIALIZED (SELECT device, t, coalesce(sum(both_ns) OVER (PARTITION BY device ORDER BY t
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS both_ns FROM spans), busy AS
        (SELECT i.pid, i.device, i.queue, sum(i.end_ns - i.start_ns)::BIGINT AS busy_ns,
        sum(b.both_ns - a.both_ns) AS both_ns FROM islands i JOIN together a ON a.device = i.device
        AND a.t = i.start_ns JOIN together b ON b.device = i.device AND b.t = i.end_ns GROUP BY
        ALL), device_spans AS (SELECT device, min(start_ns) AS from_ns, max(end_ns) AS to_ns FROM
        work GROUP BY 1), counted AS (SELECT pid, device, queue, any_value(core) AS core, count(*)
        AS ops, median(end_ns - start_ns)::BIGINT AS p50_ns, min(start_ns) AS first_ns, max(end_ns)
        AS last_ns FROM work GROUP BY pid, device, queue), causes AS (SELECT pid, device, queue,
        count(*) AS gaps, max(gap_ns) AS longest_gap_ns, coalesce(sum(gap_ns) FILTER (cause =
        'host late'), 0)::BIGINT AS host_late_ns, coalesce(sum(gap_ns) FILTER (cause =
        'dependency'), 0)::BIGINT AS dependency_ns, coalesce(sum(gap_ns) FILTER (cause =
        'synchronisation'), 0)::BIGINT AS sync_ns, coalesce(sum(gap_ns) FILTER (cause = 'launch'),
        0)::BIGINT AS launch_ns FROM caused GROUP BY pid, device, queue) SELECT c.*, b.busy_ns,
        d.to_ns - d.from_ns - b.busy_ns AS idle_ns, round(b.busy_ns / nullif(d.to_ns - d.from_ns,
        0), 4) AS utilisation, round(b.both_ns / nullif(b.busy_ns, 0), 4) AS overlap,
        coalesce(g.gaps, 0) AS gaps, coalesce(g.longest_gap_ns, 0) AS longest_gap_ns,
        coalesce(g.host_late_ns, 0) AS host_late_ns, coalesce(g.dependency_ns, 0) AS dependency_ns,
        coalesce(g.sync_ns, 0) AS sync_ns, coalesce(g.launch_ns, 0) AS launch_ns FROM counted c
        JOIN busy b ON b.pid = c.pid AND b.device = c.device AND b.queue = c.queue JOIN
        device_spans d ON d.device = c.device LEFT JOIN causes g ON g.pid = c.pid AND g.device =
        c.device AND g.queue = c.queue ORDER BY c.pid, c.core)
