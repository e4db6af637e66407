-- The same of native samples, with the frames of Python and of native code together: CPU time, and
-- waits of threads without Python that are not idle.
SELECT
    coalesce(thread, 'tid ' || tid),
    array_to_string(list_reverse(stack), chr(1)),
    count(*),
    sum(weight_ns)
FROM native.samples
WHERE len(stack) > 0 AND NOT {include native_idle} AND ts_ns >= {from} AND ts_ns < {to} AND {thread}
GROUP BY 1, 2
ORDER BY 4 DESC, 3 DESC
LIMIT 10000
