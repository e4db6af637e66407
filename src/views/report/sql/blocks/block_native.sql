-- Time by stack, with the frames of Python and of native code together: CPU time, and waits of
-- threads without Python that are not idle.
SELECT
    coalesce(thread, 'tid ' || tid) AS thread,
    stack,
    count(*) AS count,
    sum(weight_ns) AS time_ns
FROM native.samples
WHERE len(stack) > 0 AND NOT {include native_idle}
GROUP BY ALL
ORDER BY 4 DESC, 3 DESC
LIMIT 2000
