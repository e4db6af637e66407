-- The exception that ended the program, if Python recorded it.
SELECT text
FROM trace.marks
WHERE name = 'uncaught exception' AND pid = (SELECT pid FROM kymo.runs)
ORDER BY ts_ns DESC
LIMIT 1
