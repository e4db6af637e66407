-- A step that takes three times the median of its process, once ten steps are known.
WITH m AS (
    SELECT host, pid, name, median(duration_ns) AS median_ns, count(*) AS steps
    FROM trace.steps
    GROUP BY host, pid, name
)
SELECT s.step, s.name, s.duration_ns, m.median_ns, s.pid, s.rank
FROM trace.steps s
JOIN m ON m.host IS NOT DISTINCT FROM s.host AND m.pid = s.pid AND m.name = s.name
WHERE m.steps >= 10 AND s.duration_ns > 3 * m.median_ns AND s.step > 3
