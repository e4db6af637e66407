-- device.models of the time range [{from}, {to}): executions that begin in it, with their whole
-- time.
WITH named AS (
    SELECT DISTINCT host, pid, model
    FROM device.ops
    WHERE kind = 'execution' AND model IS NOT NULL
), runs AS (
    SELECT
        o.model,
        o.device,
        o.core,
        o.host,
        o.pid,
        o.start_ns AS t,
        o.end_ns - o.start_ns AS ns
    FROM device.ops o
    LEFT JOIN named n ON n.host = o.host AND n.pid = o.pid AND n.model = o.model
    WHERE o.model IS NOT NULL
        AND (o.kind = 'execution' OR (o.kind = 'kernel' AND n.model IS NULL))
    UNION ALL
    SELECT
        t.model,
        m.device,
        m.core,
        t.host,
        t.pid,
        t.ts_ns,
        (t.duration * 1e9)::BIGINT
    FROM python.torch_trace t
    JOIN device.models m
        ON m.host = t.host
        AND m.pid = t.pid
        AND m.model = t.model
        AND m.device = coalesce(t.device, 'cpu')
    ANTI JOIN named n ON n.host = t.host AND n.pid = t.pid AND n.model = t.model
    WHERE t.stage = 'forward' AND t.depth = 0 AND NOT t.recomputed
)
SELECT
    model,
    device,
    core,
    count(*) AS executions,
    quantile_disc(ns, 0.5) AS p50_ns,
    quantile_disc(ns, 0.99) AS p99_ns,
    min(ns) AS min_ns,
    max(ns) AS max_ns,
    sum(ns)::BIGINT AS total_ns
FROM runs
WHERE t >= {from} AND t < {to} AND ns IS NOT NULL
GROUP BY model, device, core, host, pid
ORDER BY total_ns DESC, model, core
LIMIT 500
