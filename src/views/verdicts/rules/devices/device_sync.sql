-- threshold: 0.05
-- weight: 0.9
-- sentence: The host waits for the device too often: after {which} {name} was idle for {share} of
--     the time ({won} of {whole}) until more work was queued.
-- evidence: the host waited {count} time{s}, {b} at the median; the device was busy for {a}
-- advice: wait less often: no .item(), .cpu(), print(tensor) or torch.cuda.synchronize() in the
--     loop; read results a step later, copy with non_blocking=True
-- tab: devices
-- query: SELECT name, zone, function, line, sum(idle_ns) FROM device.idle
--     WHERE cause = 'synchronisation' GROUP BY ALL ORDER BY 5 DESC
--
-- Idle time of the device on the critical path after a wait of the host: what it prepared then, it
-- could have prepared while the device was busy.
SELECT
    i.idle_ns,
    i.total_ns,
    i.device,
    (SELECT count(*) FROM device.waits w WHERE w.pid = i.pid),
    b.total_ns - b.idle_ns,
    (SELECT median(duration_ns) FROM device.waits w WHERE w.pid = i.pid),
    i.name,
    i.place AS place,
    i.share AS place_share
FROM {include idle_cause cause='synchronisation'} i
JOIN device.breakdown b ON b.pid = i.pid AND b.device = i.device
