-- The durations of the last steps, in their order.
SELECT duration_ns
FROM (
    SELECT start_ns, duration_ns
    FROM {include steps}
    ORDER BY start_ns DESC
    LIMIT {TOP_SPARK}
)
ORDER BY start_ns
