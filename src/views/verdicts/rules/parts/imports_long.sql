-- The number of processes whose imports take more than 0.5 s by the totals.
SELECT count(*)
FROM (
    SELECT host, pid
    FROM trace.regions
    WHERE {include is_load}
    GROUP BY host, pid
    HAVING sum(total_ns) > 5e8
)
