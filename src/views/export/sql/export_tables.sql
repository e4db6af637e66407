-- The tables to export. Some parts of trace.zones are tables of their own in a packed file; a name
-- with a slash cannot be the name of a file.
SELECT table_schema || '.' || table_name
FROM information_schema.tables
WHERE table_catalog = 'rec'
    AND NOT (table_schema = 'trace' AND table_name IN ('zone_rows', 'zone_threads', 'names'))
    AND strpos(table_name, '/') = 0
    AND strpos(table_schema, '/') = 0
ORDER BY 1
