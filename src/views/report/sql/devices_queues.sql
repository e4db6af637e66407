-- Queues by busy time; the device is named if there are several.
SELECT
    queue,
    CASE WHEN count(DISTINCT device) OVER () > 1 THEN device END,
    busy_ns,
    utilisation,
    ops,
    host_late_ns,
    sync_ns,
    dependency_ns,
    launch_ns,
    count(*) OVER ()
FROM device.queues
ORDER BY busy_ns DESC, core
LIMIT {limit}
