-- threshold: 0.15
-- weight: 0.1
-- sentence: The device is idle {share} of the run ({won}): the host does not submit work. {name}
--     was busy for {a}.
-- evidence: {count} operation{s} in {whole}
-- advice: the host takes the time: make it faster, or move more of its work to the device; queueing
--     ahead saves at most {a}
-- tab: devices
-- query: FROM device.queues ORDER BY busy_ns DESC
--
-- The busiest queue is busy for less than 5 % of the run. Above, device_idle applies.
SELECT
    host_late_ns,
    {run_ns},
    queue,
    ops,
    busy_ns,
    0,
    (SELECT place FROM {include path_places rows=kind='host'}) AS place,
    (SELECT share FROM {include path_places rows=kind='host'}) AS place_share
FROM (
    FROM device.queues
    ORDER BY busy_ns DESC
    LIMIT 1
)
WHERE busy_ns BETWEEN 1 AND 0.05 * {run_ns}
