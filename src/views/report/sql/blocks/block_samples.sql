SELECT
    coalesce(thread, 'tid ' || tid) AS thread,
    stack,
    count(*) AS count,
    sum(time_ns) AS time_ns
FROM {include sampled_threads}
WHERE len(stack) > 0
GROUP BY ALL
ORDER BY sum(weight) DESC, 3 DESC
LIMIT 4000
