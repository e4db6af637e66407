-- Fails unless the database is a packed recording: kymo.runs is a table, not a view.
SELECT error('no table kymo.runs')
WHERE NOT EXISTS (
    FROM duckdb_tables()
    WHERE database_name = '{database}' AND schema_name = 'kymo' AND table_name = 'runs'
)
