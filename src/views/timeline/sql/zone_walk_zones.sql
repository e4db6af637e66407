-- Zones of some threads or of a time range ({where}), parents before their children.
SELECT source, name, file, line, start_ns, duration_ns, depth, pid, tid, step, open, lane
FROM {include all_zones}
WHERE {where}
ORDER BY pid, tid, lane, start_ns, depth, duration_ns DESC
