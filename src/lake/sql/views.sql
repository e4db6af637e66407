-- All views of the session, those of the program's tables among them.
SELECT schema_name, view_name
FROM duckdb_views()
WHERE database_name = 'rec' AND NOT internal
ORDER BY ALL
