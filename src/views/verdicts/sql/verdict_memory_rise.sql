-- The function of the program's own code in which most of the memory was taken.
WITH g AS (
    SELECT host, pid, 0 AS from_ns
    FROM host.process
    GROUP BY host, pid
    ORDER BY max(rss_bytes) DESC
    LIMIT 1
)
SELECT place, share
FROM {include memory_rise of=g}
