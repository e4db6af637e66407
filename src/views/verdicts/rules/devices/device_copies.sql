-- threshold: 0.05
-- weight: 0.95
-- sentence: Copies from pageable memory take {share} of the time ({won} of {whole}): {name} waits
--     for them.
-- evidence: copies: {count}, {a_bytes} in all, at {which}
-- advice: pin the memory: DataLoader(pin_memory=True), tensor.pin_memory(); then copy with
--     non_blocking=True while the device computes
-- tab: devices
-- query: SELECT name, count(*), sum(bytes), sum(end_ns - start_ns) FROM device.ops
--     WHERE name LIKE '%Pageable%' GROUP BY 1
--
-- A copy from or to pageable memory goes through a buffer of the driver, and the call waits for it.
WITH c AS (
    SELECT
        host,
        pid,
        device,
        count(*) AS n,
        sum(end_ns - start_ns) AS ns,
        sum(bytes) AS bytes
    FROM device.ops
    WHERE name LIKE '%Pageable%'
    GROUP BY host, pid, device
    ORDER BY ns DESC
    LIMIT 1
), p AS (
    FROM {include path_places rows=kind='copy'}
)
SELECT
    c.ns,
    b.total_ns,
    c.device,
    c.n,
    c.bytes,
    0,
    round(c.bytes / nullif(c.ns, 0), 1)::VARCHAR || ' GB/s',
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM c
JOIN device.breakdown b ON b.host = c.host AND b.pid = c.pid AND b.device = c.device
