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
FROM python.backtrace p
WHERE depth = 0 AND {include is_main}
ORDER BY tid <> pid
LIMIT 1
