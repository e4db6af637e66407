-- The longest critical path by kind: kind, share, the time of the whole path, the number of paths,
-- and the path's rank if there are several.
SELECT
    kind,
    sum(duration_ns) / sum(sum(duration_ns)) OVER (),
    sum(sum(duration_ns)) OVER (),
    any_value(paths),
    CASE WHEN min(min(rank)) OVER () = max(max(rank)) OVER () THEN any_value(rank) END
FROM ({include longest_path})
GROUP BY kind
ORDER BY 2 DESC
