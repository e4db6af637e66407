-- The open zones of the main thread, or else of the thread with the most of them, as a sentence
-- without its end: MainThread was in train > forward.
SELECT
    any_value(coalesce(thread, 'thread ' || tid))
    || CASE (SELECT min(state) FROM kymo.runs) WHEN 'live' THEN ' is' ELSE ' was' END
    || ' in '
    || string_agg(name, ' > ' ORDER BY depth)
FROM (
    SELECT *
    FROM trace.open_zones
    WHERE depth < 8
) p
WHERE {include is_main}
GROUP BY host, pid, tid
ORDER BY tid <> pid, count(*) DESC
LIMIT 1
