-- The columns of the file, a table's together. Fails with a sentence if one is not as kymo pack
-- writes it: it has a default or generated value, or a type of another kind. Runs after
-- packed_objects.sql, since it binds the views of the file.
SELECT
    schema_name,
    table_name,
    column_name,
    data_type,
    CASE WHEN column_default IS NOT NULL
        OR NOT regexp_full_match(
            data_type,
            '(BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)'
            || '|VARCHAR|BLOB|UUID|DATE|TIME|TIMESTAMP(_\w+)?|INTERVAL)(\[\d*\])*'
        )
        THEN error(
            '{PACKED_FOREIGN}'
            || CASE WHEN column_default IS NULL
                THEN 'the type ' || data_type[:40] || ' of column '
                ELSE 'an expression in column '
            END
            || (schema_name || '.' || table_name || '.' || column_name)[:100]
        )
    END AS fault
FROM duckdb_columns()
WHERE database_name = '{database}'
ORDER BY schema_name, table_name, column_index
