-- The innermost frame of the last stack sample of the main thread, for programs without zones.
SELECT
    coalesce(thread, 'thread ' || tid)
    || ' was last seen in '
    || func
    || ' ('
    || regexp_extract(file, '[^/]*$')
    || ':'
    || lineno
    || ')'
FROM python.backtrace
WHERE depth = 0 AND pid = (SELECT pid FROM kymo.runs)
ORDER BY tid <> pid
LIMIT 1
