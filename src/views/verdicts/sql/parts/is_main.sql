-- A row p of the program itself, not of another process. Packed files of older versions have no
-- hosts.
EXISTS (
    FROM kymo.runs r
    WHERE r.pid = p.pid AND (r.host = p.host OR p.host IS NULL)
)
