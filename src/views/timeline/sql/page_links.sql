-- Forward and backward operators that a report can join: those that are farthest apart.
SELECT
    rank,
    host,
    pid,
    from_tid,
    tid,
    left(from_name, 80) AS from_name,
    left(to_name, 80) AS to_name,
    from_ns,
    to_ns
FROM trace.links
ORDER BY to_ns - from_ns DESC
LIMIT 1000
