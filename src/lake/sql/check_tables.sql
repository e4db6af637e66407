-- Loss arithmetic of a job in a lake, a row for each table.
SELECT
    table_name,
    count(DISTINCT writer) AS writers,
    sum(emitted)::BIGINT AS emitted,
    sum(in_lake)::BIGINT AS in_lake,
    sum(lost)::BIGINT AS lost,
    sum(dropped)::BIGINT AS dropped,
    sum(waiting)::BIGINT AS waiting,
    count(*) FILTER (emitted <> in_lake + lost + dropped + waiting) AS wrong
FROM kymo.flushes
GROUP BY table_name
HAVING sum(emitted) > 0
ORDER BY table_name
