-- What the program waited for when it ended, if it made no progress at its end: the reason, since
-- when, and the function. The mark is set two seconds after the last progress.
SELECT
    arg_max(text, ts_ns),
    min(ts_ns) - 2e9,
    (
        SELECT arg_max(coalesce(text, ''), ts_ns)
        FROM trace.marks
        WHERE name = 'no progress: place'
    )
FROM trace.marks
WHERE name = 'no progress'
    AND ts_ns > coalesce((SELECT max(ts_ns) FROM trace.marks WHERE name = 'progress'), -1)
HAVING count(*) > 0
