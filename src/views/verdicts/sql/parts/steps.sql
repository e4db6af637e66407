-- The steps of the loop with the most steps, by process and name: a table to select from. Of ranks
-- with equally many steps the lowest.
(
    SELECT s.*
    FROM trace.steps s
    JOIN (
        SELECT host, pid, name, count(*) AS n
        FROM trace.steps
        GROUP BY ALL
        ORDER BY n DESC, min(rank), host, pid
        LIMIT 1
    ) o ON s.host = o.host AND s.pid = o.pid AND s.name IS NOT DISTINCT FROM o.name
)
