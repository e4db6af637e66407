SELECT coalesce(thread, 'tid ' || tid) AS thread, name, age_ns
FROM trace.open_zones
ORDER BY pid, tid, depth
LIMIT 40
