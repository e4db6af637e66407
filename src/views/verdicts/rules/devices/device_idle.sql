-- threshold: 0.15
-- weight: 0.8
-- sentence: The device waits for the host: {name} was idle for {share} of the time it was in use
--     ({won} of {whole}) because no work was queued[, mostly during {which}].
-- evidence: busy {a}, idle {b}; it ran out of work {count} time{s}
-- advice: queue further ahead: prepare and copy the next batch while the device works, in another
--     thread or queue; make the host's part cheaper: fewer operators, torch.compile, CUDA graphs
-- tab: devices
-- query: SELECT cause, name, sum(idle_ns) FROM device.idle GROUP BY ALL ORDER BY 3 DESC
--
-- Idle time of the device on the critical path in which the host did something else than to load
-- data, to wait or to launch. Queueing ahead hides at most the time that the device is busy: below
-- 5 % of the run see device_unused.
SELECT
    i.idle_ns,
    i.total_ns,
    i.device,
    (
        SELECT count(*)
        FROM device.gaps g
        WHERE g.pid = i.pid AND g.device = i.device AND g.cause IN ('host late', 'synchronisation')
    ),
    b.total_ns - b.idle_ns,
    b.idle_ns,
    i.name,
    i.place AS place,
    i.share AS place_share
FROM {include idle_cause cause='host'} i
JOIN device.breakdown b ON b.pid = i.pid AND b.device = i.device
WHERE b.total_ns - b.idle_ns > 0.05 * {run_ns}
