-- Native samples of threads that have no Python samples and are not idle, as place_samples.sql
-- describes. Threads of Python are sampled on and off the CPU, and their time is counted there.
SELECT
    'native' AS source,
    s.host,
    s.pid,
    o.function,
    o.file,
    o.line,
    coalesce(o.self, true) AS self,
    s.running,
    s.samples,
    s.time_ns,
    s.weight
FROM (
    SELECT
        process_id AS collector_id,
        host,
        node,
        target_pid AS pid,
        (flags & {SCHEMA_NATIVE_WAITING}) = 0 AS running,
        count(*) AS samples,
        sum(weight_ns) AS time_ns,
        sum(weight_ns) AS weight
    FROM kymo_scan('native.samples') n
    WHERE NOT ((flags & {SCHEMA_NATIVE_WAITING}) > 0 AND {include native_idle}) AND NOT EXISTS (
        FROM kymo_scan('python.samples') p
        WHERE p.host = n.host AND p.target_pid = n.target_pid AND p.target_tid = n.target_tid
    )
    GROUP BY ALL
) s
LEFT JOIN kymo_native_own_frames() o ON o.collector_id = s.collector_id AND o.node = s.node
