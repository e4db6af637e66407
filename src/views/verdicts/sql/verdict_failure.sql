-- The exception that ended the program, if Python recorded it.
SELECT text
FROM trace.marks p
WHERE name = 'uncaught exception' AND {include is_main}
ORDER BY ts_ns DESC
LIMIT 1
