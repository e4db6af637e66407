SELECT
    name,
    count(*) AS count,
    avg(value) AS mean,
    coalesce(stddev_samp(value), 0) AS std,
    min(value) AS min,
    max(value) AS max,
    arg_max(value, ts_ns) AS last
FROM trace.counters
WHERE isfinite(value)
GROUP BY name
ORDER BY name
LIMIT 500
