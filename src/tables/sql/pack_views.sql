-- All views of the session, including those of the user's tables.
SELECT schema_name, view_name
FROM duckdb_views()
WHERE database_name = 'rec' AND NOT internal
ORDER BY ALL
