-- Each distinct native stack with its number of samples and their time, one row a frame, the
-- outermost frame first. Idle threads do not count.
SELECT
    id,
    n,
    unnest(list_reverse(stack)) AS frame,
    time_ns,
    generate_subscripts(stack, 1) AS i
FROM (
    SELECT
        stack,
        count(*) AS n,
        sum(weight_ns) AS time_ns,
        row_number() OVER (ORDER BY stack) AS id
    FROM native.samples
    WHERE NOT {include native_idle}
    GROUP BY stack
)
ORDER BY id, i
