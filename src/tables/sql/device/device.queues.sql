-- Queue utilisation, with idle time by cause.
--
-- device          VARCHAR  device
-- queue           VARCHAR  queue or stream
-- busy_ns         BIGINT   time with an operation running
-- idle_ns         BIGINT   time without one, from the first operation of the device to its last, on
--                          any queue
-- utilisation     DOUBLE   busy_ns / (busy_ns + idle_ns), 0 to 1
-- overlap         DOUBLE   share of busy_ns in which another queue of the device was also busy
-- ops             BIGINT   number of operations, without markers and barriers
-- gaps            BIGINT   number of gaps: intervals between operations in which nothing ran
-- longest_gap_ns  BIGINT   longest gap
-- host_late_ns    BIGINT   gap time in which the host had not queued the next operation
-- sync_ns         BIGINT   gap time in which the host had not queued it because it had waited for
--                          the device
-- dependency_ns   BIGINT   gap time in which the queued operation waited for other operations
-- launch_ns       BIGINT   gap time that device and driver took to start the queued operation
-- p50_ns          BIGINT   median duration of an operation
-- first_ns        BIGINT   start of the first operation
-- last_ns         BIGINT   end of the last operation
-- core            INTEGER  core, or number of the queue in order of creation
-- pid             INTEGER  process ID
-- rank            INTEGER  rank of the process; NULL outside a distributed run
-- host            VARCHAR  host name
--
-- An island is an interval in which a queue is always busy. both_ns of together is the time until t
-- in which more than one queue of the device was busy. Each process has its devices: cuda:0 of two
-- ranks or hosts are usually two devices.
WITH
{include device_gaps},
islands AS MATERIALIZED (
    SELECT process_id, device, queue, min(start_ns) AS start_ns, max(end_ns) AS end_ns
    FROM (
        SELECT
            *,
            sum((start_ns > coalesce(free_ns, start_ns - 1))::INT) OVER (
                PARTITION BY process_id, device, queue ORDER BY start_ns, end_ns
            ) AS island
        FROM placed
    )
    GROUP BY process_id, device, queue, island
),
points AS (
    SELECT process_id, device, t, sum(d) AS d
    FROM (
        SELECT process_id, device, start_ns AS t, 1 AS d FROM islands
        UNION ALL
        SELECT process_id, device, end_ns, -1 FROM islands
    )
    GROUP BY process_id, device, t
),
spans AS (
    SELECT
        process_id,
        device,
        t,
        CASE WHEN sum(d) OVER w > 1 THEN lead(t) OVER w - t ELSE 0 END AS both_ns
    FROM points
    WINDOW w AS (PARTITION BY process_id, device ORDER BY t)
),
together AS MATERIALIZED (
    SELECT
        process_id,
        device,
        t,
        coalesce(sum(both_ns) OVER (
            PARTITION BY process_id, device
            ORDER BY t
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS both_ns
    FROM spans
),
busy AS (
    SELECT
        i.process_id,
        i.device,
        i.queue,
        sum(i.end_ns - i.start_ns)::BIGINT AS busy_ns,
        sum(b.both_ns - a.both_ns) AS both_ns
    FROM islands i
    JOIN together a
        ON a.process_id = i.process_id AND a.device = i.device AND a.t = i.start_ns
    JOIN together b
        ON b.process_id = i.process_id AND b.device = i.device AND b.t = i.end_ns
    GROUP BY i.process_id, i.device, i.queue
),
device_spans AS (
    SELECT process_id, device, min(start_ns) AS from_ns, max(end_ns) AS to_ns
    FROM work
    GROUP BY process_id, device
),
counted AS (
    SELECT
        process_id,
        device,
        queue,
        any_value(pid) AS pid,
        any_value(rank) AS rank,
        any_value(host) AS host,
        any_value(core) AS core,
        count(*) AS ops,
        median(end_ns - start_ns)::BIGINT AS p50_ns,
        min(start_ns) AS first_ns,
        max(end_ns) AS last_ns
    FROM work
    GROUP BY process_id, device, queue
),
causes AS (
    SELECT
        process_id,
        device,
        queue,
        count(*) AS gaps,
        max(gap_ns) AS longest_gap_ns,
        sum(gap_ns) FILTER (cause = 'host late') AS host_late_ns,
        sum(gap_ns) FILTER (cause = 'synchronisation') AS sync_ns,
        sum(gap_ns) FILTER (cause = 'dependency') AS dependency_ns,
        sum(gap_ns) FILTER (cause = 'launch') AS launch_ns
    FROM caused
    GROUP BY process_id, device, queue
)
SELECT
    c.device,
    c.queue,
    b.busy_ns,
    d.to_ns - d.from_ns - b.busy_ns AS idle_ns,
    round(b.busy_ns / nullif(d.to_ns - d.from_ns, 0), 4) AS utilisation,
    round(b.both_ns / nullif(b.busy_ns, 0), 4) AS overlap,
    c.ops,
    coalesce(g.gaps, 0) AS gaps,
    coalesce(g.longest_gap_ns, 0) AS longest_gap_ns,
    coalesce(g.host_late_ns, 0)::BIGINT AS host_late_ns,
    coalesce(g.sync_ns, 0)::BIGINT AS sync_ns,
    coalesce(g.dependency_ns, 0)::BIGINT AS dependency_ns,
    coalesce(g.launch_ns, 0)::BIGINT AS launch_ns,
    c.p50_ns,
    c.first_ns,
    c.last_ns,
    c.core,
    c.pid,
    c.rank,
    c.host
FROM counted c
JOIN busy b ON b.process_id = c.process_id AND b.device = c.device AND b.queue = c.queue
JOIN device_spans d ON d.process_id = c.process_id AND d.device = c.device
LEFT JOIN causes g ON g.process_id = c.process_id AND g.device = c.device AND g.queue = c.queue
ORDER BY c.host, c.pid, c.core
