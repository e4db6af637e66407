-- Steps of ranks, for the map of step and rank.
SELECT rank, step, start_ns, duration_ns
FROM trace.steps
WHERE rank IS NOT NULL
