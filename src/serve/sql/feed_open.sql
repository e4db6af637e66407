SELECT pid, tid, depth, start_ns, 0, source, name, file, line, thread, rank, host
FROM trace.open_zones
