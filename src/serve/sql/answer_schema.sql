-- Columns of all tables of the recording.
SELECT table_schema, table_name, column_name, data_type
FROM information_schema.columns
WHERE table_catalog = 'rec' AND table_schema NOT IN ('information_schema', 'pg_catalog')
ORDER BY 1, 2, ordinal_position
