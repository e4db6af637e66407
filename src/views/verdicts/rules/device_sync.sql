-- threshold: 0.10
-- weight: 0.9
-- sentence: The host waits for the device too often: after these waits {name} was idle for {share}
--     of the run ({won}) until more work was submitted.
-- evidence: the host waited {count} time{s}, {b} at the median; the queue was busy for {a}
-- advice: wait less often: queue several operations before a wait, read results later and without
--     blocking
-- tab: devices
-- query: SELECT zone, count(*), sum(duration_ns) FROM device.waits GROUP BY 1
--
-- The queue with the most idle time of the cause "synchronisation".
SELECT
    sync_ns,
    {run_ns},
    queue,
    (SELECT count(*) FROM device.waits),
    busy_ns,
    (SELECT median(duration_ns) FROM device.waits)
FROM device.queues
ORDER BY sync_ns DESC
LIMIT 1
