-- SHOW TABLES of DuckDB lists one schema; the tables of a recording are in many.
SELECT
    schema || '.' || name AS name,
    array_to_string(column_names, ', ') AS columns
FROM (SHOW ALL TABLES)
WHERE database = 'rec'
ORDER BY 1
