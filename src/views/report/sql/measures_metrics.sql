-- Counters by name, in the columns of measures_timing.
SELECT
    name,
    '',
    count(*),
    sum(value),
    avg(value),
    coalesce(stddev_samp(value), 0),
    min(value),
    max(value),
    quantile_cont(value, 0.5),
    quantile_cont(value, 0.9),
    quantile_cont(value, 0.99),
    arg_max(value, ts_ns)
FROM trace.counters
WHERE isfinite(value) AND name IS NOT NULL
GROUP BY name
ORDER BY name
