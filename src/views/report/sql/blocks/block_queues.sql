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
    launch_ns
FROM device.queues
ORDER BY device, core
LIMIT 500
