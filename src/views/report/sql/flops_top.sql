-- Modules by the FLOPs that are theirs alone, forward and backward; first the whole process. FLOPs
-- by step, FLOP/s, the share of the peak, the number of operators by step, the peak and its origin.
WITH modules AS (
    SELECT
        module,
        model,
        sum(flops) / max(steps) AS flops,
        sum(self_flops) / max(steps) AS self_flops,
        sum(flops) * 1e9 / nullif(sum(duration_ns), 0) AS flops_per_s,
        sum(operators) / max(steps) AS operators,
        max(peak) AS peak,
        any_value(peak_origin) AS origin,
        max(steps) AS steps
    FROM torch.flops
    GROUP BY module, model
)
SELECT
    module,
    flops::DOUBLE,
    coalesce(flops_per_s, 0),
    coalesce(flops_per_s / peak, -1),
    operators::DOUBLE,
    coalesce(peak, 0),
    coalesce(origin, ''),
    steps::DOUBLE
FROM modules
WHERE module IS NULL OR self_flops > 0
ORDER BY module IS NOT NULL, self_flops DESC, module
LIMIT {limit}
