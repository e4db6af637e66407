-- The busiest threads, and how many there are. The outermost zones (depth 0) cover a thread's busy
-- time; open zones count until the end.
SELECT
    any_value(thread),
    tid,
    sum(duration_ns) FILTER (depth = 0) AS busy,
    count(*),
    count(*) OVER ()
FROM (
    SELECT host, pid, tid, thread, depth, duration_ns
    FROM trace.zones
    UNION ALL
    SELECT host, pid, tid, thread, depth, age_ns
    FROM trace.open_zones
)
GROUP BY host, pid, tid
ORDER BY busy DESC NULLS LAST, tid
LIMIT 10
