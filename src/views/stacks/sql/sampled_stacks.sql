-- Each distinct stack with its number of samples, one row a frame, the outermost frame first.
SELECT
    id,
    n,
    unnest(list_reverse(stack)) AS frame,
    generate_subscripts(stack, 1) AS i
FROM (
    SELECT
        stack,
        count(*) AS n,
        row_number() OVER (ORDER BY stack) AS id
    FROM python.samples
    GROUP BY stack
)
ORDER BY id, i
