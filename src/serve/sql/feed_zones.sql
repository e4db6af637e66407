-- Zones in the order of their start.
SELECT pid, tid, depth, start_ns, duration_ns, source, name, file, line, thread, rank
FROM trace.zones
WHERE duration_ns >= 0
