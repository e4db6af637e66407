-- Steps of ranks, for the map of a report.
SELECT rank, step, start_ns, duration_ns
FROM trace.steps
WHERE rank IS NOT NULL
ORDER BY rank, step, start_ns
