SELECT coalesce(thread, 'tid ' || tid) AS thread, stack, count(*) AS count
FROM python.samples
WHERE len(stack) > 0
GROUP BY ALL
ORDER BY 3 DESC
LIMIT 4000
