-- Device operations by the zone, function and module that launched them.
SELECT
    name,
    kind,
    module,
    function,
    zone,
    count(*) AS ops,
    median(duration_ns)::BIGINT AS p50_ns,
    sum(duration_ns)::BIGINT AS total_ns
FROM device.launches
WHERE kind <> 'execution'
GROUP BY ALL
ORDER BY total_ns DESC NULLS LAST, name, zone, function, module
LIMIT 500
