-- Stack samples of Python threads, as place_samples.sql describes.
SELECT
    'python' AS source,
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
        state = ascii('R') AS running,
        count(*) AS samples,
        sum(weight_ns) AS time_ns,
        sum(coalesce(weight_ns, 1)) AS weight
    FROM kymo_scan('python.samples')
    WHERE cause = 'period'
    GROUP BY ALL
) s
LEFT JOIN kymo_own_frames() o ON o.collector_id = s.collector_id AND o.node = s.node
