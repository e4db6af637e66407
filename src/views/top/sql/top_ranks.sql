-- Steps of each rank in the last seconds.
SELECT rank, count(*) FILTER (start_ns + duration_ns >= {from_ns}), max(step)
FROM trace.steps
WHERE rank IS NOT NULL
GROUP BY rank
ORDER BY rank
LIMIT {TOP_RANKS}
