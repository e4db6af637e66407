-- Tables that lost rows.
SELECT
    table_name,
    sum(emitted),
    sum(kept),
    sum(overwritten),
    sum(dropped)
FROM kymo.streams
GROUP BY 1
HAVING sum(overwritten) + sum(dropped) > 0
ORDER BY 1
