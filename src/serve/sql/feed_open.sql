SELECT pid, tid, depth, start_ns, 0, source, name, file, line, thread, rank
FROM trace.open_zones
