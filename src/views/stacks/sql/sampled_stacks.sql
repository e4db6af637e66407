-- Each distinct stack with its number of samples and their time (0 if no weights were recorded),
-- one row a frame, the outermost frame first.
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
        sum(time_ns) AS time_ns,
        row_number() OVER (ORDER BY stack) AS id
    FROM {include sampled_threads}
    GROUP BY stack
)
ORDER BY id, i
