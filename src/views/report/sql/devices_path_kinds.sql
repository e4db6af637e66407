-- The critical path by kind: kind, share, and the time of the whole path.
SELECT kind, sum(duration_ns) / sum(sum(duration_ns)) OVER (), sum(sum(duration_ns)) OVER ()
FROM trace.critical_sums
GROUP BY kind
ORDER BY 2 DESC
