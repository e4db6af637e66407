-- The modules of a model as a tree. The model is the module without a dot that takes the most time;
-- it contains the other modules without a dot.
WITH m AS (
    SELECT
        module,
        count(*) FILTER (stage = 'forward') AS calls,
        coalesce(sum(duration) FILTER (stage = 'forward'), 0) * 1e9 AS forward_ns,
        coalesce(sum(duration) FILTER (stage = 'backward'), 0) * 1e9 AS backward_ns,
        coalesce(sum(duration) FILTER (stage = 'step'), 0) * 1e9 AS step_ns,
        sum(duration) * 1e9 AS total_ns,
        sum(self) * 1e9 AS self_ns,
        max(max_allocated) AS max_allocated,
        sum(device_ns) AS device_ns
    FROM python.torch_trace
    WHERE module <> ''
    GROUP BY 1
), root AS (
    SELECT module
    FROM m
    WHERE calls > 0 AND NOT contains(module, '.')
    ORDER BY total_ns DESC
    LIMIT 1
)
SELECT *
FROM (
    SELECT
        *,
        CASE
            WHEN calls = 0 OR module IN (SELECT module FROM root) THEN 0
            ELSE len(module) - len(replace(module, '.', '')) + 1
        END AS depth
    FROM m
)
ORDER BY calls = 0, depth > 0, module
LIMIT 2000
