SELECT pid, tid, depth, start_ns, duration_ns, source, name, file, line, thread, rank, host
FROM trace.zones
