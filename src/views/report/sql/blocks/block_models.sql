SELECT model, device, core, executions, p50_ns, p99_ns, min_ns, max_ns, total_ns
FROM device.models
LIMIT 500
