-- Sampled stacks as zones, in the columns of gather_zones.
SELECT pid, tid, depth, start_ns, duration_ns, source, name, file, line, thread, rank, NULL
FROM {include sampled_zones}
ORDER BY pid, tid, start_ns, depth
