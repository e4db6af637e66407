-- Memory and CPU usage of the process with the highest peak. "Early" is after the first tenth, when
-- start-up is over.
SELECT
    max(rss_bytes),
    arg_max(ts_ns, rss_bytes),
    arg_max(rss_bytes, ts_ns),
    max(ts_ns),
    avg(cpu_pct),
    count(*),
    arg_min(rss_bytes, ts_ns) FILTER (ts_ns >= early),
    min(ts_ns) FILTER (ts_ns >= early)
FROM (
    SELECT *, min(ts_ns) OVER w + (max(ts_ns) OVER w - min(ts_ns) OVER w) / 10 AS early
    FROM host.process
    WINDOW w AS (PARTITION BY pid)
)
GROUP BY pid
ORDER BY 1 DESC
LIMIT 1
