-- Native samples by stack, in the format of flame graph tools.
--
-- stack     VARCHAR  functions separated by ; with the outermost first
-- samples   BIGINT   number of samples
-- pid       INTEGER  process ID
-- thread    VARCHAR  thread name
-- time_ns   BIGINT   time that the samples stand for, on a CPU or waiting
-- activity  VARCHAR  what the thread did, as in native.samples
-- host      VARCHAR  host name
WITH counts AS (
    SELECT
        process_id AS collector_id,
        host,
        node,
        target_pid AS pid,
        thread_name AS thread,
        CASE
            WHEN (flags & {SCHEMA_NATIVE_WAITING}) > 0 THEN activity
            ELSE 'running'
        END AS activity,
        count(*) AS samples,
        sum(weight_ns) AS time_ns
    FROM kymo_scan('native.samples')
    GROUP BY ALL
)
SELECT
    l.folded AS stack,
    sum(c.samples)::BIGINT AS samples,
    c.pid,
    c.thread,
    sum(c.time_ns)::BIGINT AS time_ns,
    c.activity,
    c.host
FROM counts c
JOIN kymo_native_leaves() l ON l.collector_id = c.collector_id AND l.node = c.node
GROUP BY l.folded, c.host, c.pid, c.thread, c.activity
ORDER BY sum(c.time_ns) DESC, sum(c.samples) DESC
