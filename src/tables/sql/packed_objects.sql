-- Fails with a sentence if a file of others, attached as {database}, has what kymo pack never
-- writes. Nothing of the file is evaluated here: it is not the current database, so a macro of the
-- file does not replace a function. A file can set `internal` of its views, which is not used
-- therefore. The database expected is of packed_expected.sql.
SELECT error('{PACKED_FOREIGN}' || kind || ' ' || name[:100])
FROM (
    SELECT 'the view' AS kind, schema_name || '.' || view_name AS name
    FROM duckdb_views()
    WHERE database_name = '{database}'
        AND coalesce(sql, '') NOT IN (
            SELECT sql
            FROM duckdb_views()
            WHERE database_name IN ('expected', 'expected_old')
        )
    UNION ALL
    SELECT 'the macro', schema_name || '.' || function_name
    FROM duckdb_functions()
    WHERE database_name = '{database}'
    UNION ALL
    SELECT 'the sequence', schema_name || '.' || sequence_name
    FROM duckdb_sequences()
    WHERE database_name = '{database}'
    UNION ALL
    SELECT 'the index', schema_name || '.' || index_name
    FROM duckdb_indexes()
    WHERE database_name = '{database}'
    UNION ALL
    SELECT 'the type', schema_name || '.' || type_name
    FROM duckdb_types()
    WHERE database_name = '{database}' AND NOT internal
    UNION ALL
    SELECT 'a constraint of', schema_name || '.' || table_name
    FROM duckdb_constraints()
    WHERE database_name = '{database}'
)
