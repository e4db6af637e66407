-- work, placed, waits, gaps and caused, the common table expressions of device.queues and
-- device.gaps. A gap is an interval between two operations of a queue in which nothing ran. The
-- operation that ends it was queued somewhere in the gap; the longer of the two sides gives the
-- cause. After the queueing it is a dependency or the launch; before it, the host was late or had
-- waited for the device.
work AS MATERIALIZED (
    SELECT
        process_id,
        pid,
        rank,
        host,
        device,
        queue,
        core,
        thread_id,
        name,
        flags,
        start_ns,
        greatest(end_ns, start_ns) AS end_ns,
        CASE WHEN (flags & {SCHEMA_DEVICE_QUEUED}) > 0 THEN queued_ns END AS queued_ns
    FROM kymo_scan('device.ops')
    WHERE kind < {KYMO_DEVICE_EXECUTION}
        AND kind NOT IN ({KYMO_DEVICE_MARKER}, {KYMO_DEVICE_BARRIER})
        AND (flags & {DEVICE_BOTH_ENDS}) = {DEVICE_BOTH_ENDS}
),
placed AS MATERIALIZED (
    SELECT
        *,
        max(end_ns) OVER (
            PARTITION BY process_id, device, queue
            ORDER BY start_ns, end_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS free_ns
    FROM work
),
waits AS MATERIALIZED (
    SELECT process_id, thread_id, start_ns AS wait_ns, end_ns AS waited_ns
    FROM kymo_scan('device.ops')
    WHERE kind = {KYMO_DEVICE_WAIT}
),
gaps AS MATERIALIZED (
    SELECT
        *,
        start_ns - free_ns AS gap_ns,
        queued_ns - free_ns < start_ns - queued_ns AS queued_early
    FROM placed
    WHERE start_ns > free_ns
),
caused AS MATERIALIZED (
    SELECT
        g.*,
        CASE
            WHEN g.queued_early AND (g.flags & {KYMO_DEVICE_DEPENDS}) > 0 THEN 'dependency'
            WHEN g.queued_early THEN 'launch'
            WHEN w.waited_ns >= g.free_ns
                AND w.wait_ns <= g.free_ns
                AND g.queued_ns - w.waited_ns <= g.gap_ns / 2
                THEN 'synchronisation'
            ELSE 'host late'
        END AS cause
    FROM gaps g
    ASOF LEFT JOIN waits w
        ON g.process_id = w.process_id
        AND g.thread_id = w.thread_id
        AND g.queued_ns >= w.waited_ns
)
