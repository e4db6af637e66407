-- The modules of each model as a tree, the costliest model first. A module is below the nearest
-- module of the model that is recorded and whose name its own name continues: transformer.h.0 is
-- below transformer, because transformer.h, a list, is never called. The model itself is the root
-- of all its modules; if it was never called, it has no row. What is in no model comes last:
-- optimizers, and backward as a whole.
WITH m AS (
    SELECT
        module,
        model,
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
    GROUP BY module, model
), named AS (
    SELECT *, module = model AS is_model, string_split(module, '.') AS parts
    FROM m
), prefixes AS (
    SELECT
        model,
        module,
        unnest([array_to_string(parts[:i], '.') FOR i IN range(1, len(parts))]) AS prefix
    FROM named
), inner_of AS (
    SELECT p.model, p.module, count(*) AS above
    FROM prefixes p
    JOIN named n ON n.module = p.prefix AND n.model IS NOT DISTINCT FROM p.model
    WHERE n.calls > 0
    GROUP BY p.model, p.module
)
SELECT
    n.module,
    calls,
    forward_ns,
    backward_ns,
    step_ns,
    total_ns,
    self_ns,
    max_allocated,
    device_ns,
    CASE
        WHEN calls = 0 OR is_model THEN 0
        ELSE coalesce(above, 0) + coalesce(bool_or(is_model) OVER of_model, false)::BIGINT
    END AS depth
FROM named n
LEFT JOIN inner_of i ON i.module = n.module AND i.model IS NOT DISTINCT FROM n.model
WINDOW of_model AS (PARTITION BY n.model)
ORDER BY
    calls = 0,
    sum(self_ns) OVER of_model DESC,
    n.model,
    coalesce(is_model, false) DESC,
    [CASE WHEN regexp_full_match(x, '[0-9]+') THEN lpad(x, 9, '0') ELSE x END FOR x IN parts],
    n.module
LIMIT 2000
