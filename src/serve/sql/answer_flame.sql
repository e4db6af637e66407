-- Sampled stacks of a time range, the outermost frame first, joined by the character 1. {thread} is
-- a condition on the thread. The time is 0 if no weights were recorded.
SELECT
    coalesce(thread, 'tid ' || tid),
    array_to_string(list_reverse(stack), chr(1)),
    count(*),
    sum(time_ns)
FROM {include sampled_threads}
WHERE len(stack) > 0 AND ts_ns >= {from} AND ts_ns < {to} AND {thread}
GROUP BY 1, 2
ORDER BY sum(weight) DESC, 3 DESC
LIMIT 10000
