-- threshold: 0.10
-- weight: 0.95
-- sentence: The device waits for data: {name} was idle for {share} of the time ({won} of {whole})
--     while the host loaded data.
-- evidence: {a} for each of {count} step{s}; mostly {which}
-- advice: load in other processes: DataLoader(num_workers=…, pin_memory=True,
--     persistent_workers=True), and prefetch
-- tab: devices
-- query: SELECT step, sum(idle_ns) FROM device.idle WHERE cause = 'data' GROUP BY 1
--
-- Idle time of the device on the critical path, in which the host was in a data loader. Where steps
-- have a data phase, the verdict data says it.
SELECT
    idle_ns,
    total_ns,
    device,
    steps,
    idle_ns / greatest(steps, 1),
    0,
    name,
    place AS place,
    share AS place_share
FROM {include idle_cause cause='data'}
WHERE coalesce((SELECT sum(data_ns) FROM trace.steps), 0) = 0
