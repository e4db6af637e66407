-- Collectives of the last attempt: all of them, unless the job was restarted.
(
    SELECT c.*
    FROM dist.collectives c
    ANTI JOIN (
        SELECT host, pid
        FROM dist.ranks
        WHERE pid IS NOT NULL
        QUALIFY coalesce(attempt, 0) < max(coalesce(attempt, 0)) OVER ()
    ) old ON old.host = c.host AND old.pid = c.pid
)
