-- The rows of trace.critical_sums of the longest path, with the number of paths: ranks that no
-- collective connects have one each, and their times do not add up to that of the run.
SELECT s.*, l.paths
FROM trace.critical_sums s
JOIN (
    SELECT arg_max(path, ns) AS path, count(*) AS paths
    FROM (SELECT path, sum(duration_ns) AS ns FROM trace.critical_sums GROUP BY path ORDER BY path)
) l USING (path)
