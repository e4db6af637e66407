-- The operations that a thread launched in a time range.
SELECT rank, host, pid, tid, device, queue, name, queued_ns, start_ns, end_ns
FROM device.ops
WHERE
    queued_ns BETWEEN {from} AND {to}
    AND start_ns IS NOT NULL
    AND end_ns IS NOT NULL
    AND tid = {thread}
    AND {ranks}
    AND {pid}
ORDER BY queued_ns
LIMIT {limit}
