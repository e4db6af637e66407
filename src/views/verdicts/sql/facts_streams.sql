-- Rows of each table: how many were emitted, kept and lost.
SELECT
    table_name,
    sum(emitted),
    sum(kept),
    sum(overwritten),
    sum(dropped)
FROM kymo.streams
GROUP BY 1
ORDER BY 1
