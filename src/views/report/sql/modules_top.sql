-- The costliest torch modules by self time, in seconds. The model is named only if a module of this
-- name is in several models. The last column is above 0 if any module has time on a device.
SELECT
    coalesce(label, module),
    CASE WHEN count(*) OVER (PARTITION BY module) > 1 THEN model END,
    own,
    own / sum(own) OVER (),
    calls,
    forward,
    backward,
    device,
    (count(device) OVER ())::DOUBLE
FROM (
    SELECT
        module,
        model,
        sum(self) AS own,
        count(*) FILTER (stage = 'forward') AS calls,
        avg(self) FILTER (stage = 'forward') AS forward,
        avg(self) FILTER (stage = 'backward') AS backward,
        sum(device_ns) / 1e9 / nullif(count(*) FILTER (stage = 'forward'), 0) AS device
    FROM python.torch_trace
    WHERE model IS NOT NULL
    GROUP BY module, model
)
LEFT JOIN {include module_labels} ON name = module
ORDER BY own DESC, module
LIMIT {limit}
