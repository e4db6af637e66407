-- How many steps take more than twice the median.
SELECT count(*)
FROM (
    SELECT duration_ns, median(duration_ns) OVER () AS usual
    FROM {include steps}
)
WHERE duration_ns > 2 * usual
