SELECT rank, device, total_ns, computation_ns, communication_ns, memory_ns, idle_ns
FROM device.breakdown
WHERE total_ns > 0
ORDER BY rank, device
LIMIT 10000
