-- The longest region that is the outermost zone of a thread: its calls count as iterations.
SELECT r.name, sum(r.count)
FROM trace.regions r
WHERE r.count > 0 AND r.name IN (SELECT name FROM trace.zones WHERE depth = 0)
GROUP BY 1
ORDER BY sum(r.total_ns) DESC
LIMIT 1
