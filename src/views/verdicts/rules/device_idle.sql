-- threshold: 0.15
-- weight: 0.8
-- sentence: The device waits for the host: {name} was idle for {share} of the run ({won}) because
--     no work was queued.
-- evidence: busy {a}, idle {b}; it ran out of work {count} time{s}
-- advice: queue further ahead: prepare and copy the next batch while the device works, in another
--     thread or queue
-- tab: devices
-- query: SELECT cause, sum(duration_ns) FROM device.gaps GROUP BY 1
--
-- Queueing ahead hides at most the time that the device is busy. Below 5 % of the run this gains
-- nearly nothing: see device_unused.
SELECT
    host_late_ns,
    {run_ns},
    queue,
    gaps,
    busy_ns,
    idle_ns
FROM device.queues
WHERE busy_ns > 0.05 * {run_ns}
ORDER BY busy_ns DESC
LIMIT 1
