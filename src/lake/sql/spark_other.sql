-- Tables that are not in the catalog: those of the program, and those that lakes alone have.
SELECT table_schema, table_name, column_name, data_type
FROM information_schema.columns
WHERE table_catalog = 'rec'
ORDER BY table_schema, table_name, ordinal_position
