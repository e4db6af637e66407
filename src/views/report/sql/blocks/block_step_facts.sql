-- A slow step takes more than twice the median.
SELECT
    count(*) AS count,
    median(duration_ns) AS median_ns,
    quantile_cont(duration_ns, 0.99) AS p99_ns,
    sum(duration_ns) AS total_ns,
    count(*) FILTER (duration_ns > 2 * usual) AS slow
FROM (
    SELECT duration_ns, median(duration_ns) OVER () AS usual
    FROM {include steps}
)
