-- Launches that a report can join with their operations: those of the longest ones.
SELECT rank, host, pid, tid, device, queue, left(name, 80) AS name, queued_ns, start_ns, end_ns
FROM device.ops
WHERE queued_ns IS NOT NULL AND start_ns IS NOT NULL AND end_ns >= start_ns
ORDER BY end_ns - start_ns DESC
LIMIT 2000
