-- The busiest queue, its longest operation, and how many queues there are.
SELECT
    queue,
    busy_ns,
    utilisation,
    ops,
    ns,
    name,
    count(*) OVER ()
FROM device.queues
LEFT JOIN (
    SELECT
        host,
        pid,
        device,
        queue,
        max(end_ns - start_ns) AS ns,
        arg_max(name, end_ns - start_ns) AS name
    FROM device.ops
    WHERE kind NOT IN ('execution', 'module')
    GROUP BY ALL
) USING (host, pid, device, queue)
ORDER BY busy_ns DESC, core
LIMIT 1
