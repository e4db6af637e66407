-- Of the first threads, which are numbered from 1.
SELECT
    dense_rank() OVER (ORDER BY rank NULLS LAST, host, pid, tid) AS number,
    rank,
    tid,
    thread,
    name,
    age_ns
FROM trace.open_zones
QUALIFY number <= {OPEN_THREADS_SHOWN} + 1
ORDER BY number, depth
LIMIT 200
