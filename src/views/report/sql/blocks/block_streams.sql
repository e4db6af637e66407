SELECT
    table_name,
    sum(emitted) AS emitted,
    sum(kept) AS kept,
    sum(overwritten) AS overwritten,
    sum(dropped) AS dropped
FROM kymo.streams
GROUP BY 1
ORDER BY 1
LIMIT 200
