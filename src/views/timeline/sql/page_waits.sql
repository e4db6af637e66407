-- The time that each rank waited for others in each step, likewise.
SELECT rank, step, sum(wait_ns)
FROM dist.collectives
WHERE rank IS NOT NULL AND wait_ns IS NOT NULL
GROUP BY rank, step
