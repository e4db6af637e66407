-- The process that is shown if only one can be: the one with the most memory.
(
    SELECT (host, pid)
    FROM host.process
    GROUP BY host, pid
    ORDER BY max(rss_bytes) DESC, pid
    LIMIT 1
)
