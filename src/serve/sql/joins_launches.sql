-- The launches of operations that ran in a time range on the devices of a process ({pid}).
SELECT rank, host, pid, tid, device, queue, name, queued_ns, start_ns, end_ns
FROM device.ops
WHERE
    queued_ns IS NOT NULL
    AND start_ns < {to}
    AND end_ns >= {from}
    AND {ranks}
    AND {pid}
ORDER BY end_ns - start_ns DESC
LIMIT {limit}
