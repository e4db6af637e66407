-- The time of each phase of a step, and of the rest.
WITH p AS (
    SELECT
        coalesce(sum(data_ns), 0) AS d,
        coalesce(sum(forward_ns), 0) AS f,
        coalesce(sum(backward_ns), 0) AS b,
        coalesce(sum(optimizer_ns), 0) AS o,
        sum(duration_ns) AS t
    FROM {include steps}
)
SELECT name, ns
FROM (
    SELECT 1 AS k, 'data' AS name, d AS ns FROM p
    UNION ALL
    SELECT 2, 'forward', f FROM p
    UNION ALL
    SELECT 3, 'backward', b FROM p
    UNION ALL
    SELECT 4, 'optimizer', o FROM p
    UNION ALL
    SELECT 5, 'other', greatest(t - d - f - b - o, 0) FROM p WHERE d + f + b + o > 0
)
WHERE ns > 0
ORDER BY k
