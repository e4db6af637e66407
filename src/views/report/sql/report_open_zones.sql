SELECT pid, tid, thread, name, age_ns
FROM trace.open_zones
ORDER BY pid, tid, depth
LIMIT 200
