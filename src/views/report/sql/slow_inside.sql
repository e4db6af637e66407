-- What was different in each of the slow steps: of the zones that exceeded their usual time by half
-- of the step's excess, the innermost; otherwise the zone with the largest excess. One scan for all
-- steps. Zones as long as the step itself belong to it.
--
-- Modules in backward have no zones: they come from python.torch_trace. The usual time of a zone
-- that occurs in fewer than half of the {steps} steps is 0.
-- {which} is WHEN … THEN number of the step, {excess} WHEN number THEN its time above the median.
WITH seen AS (
    SELECT name, depth, duration_ns, start_ns, pid, 0 AS kind
    FROM trace.zones
    UNION ALL
    SELECT module, 1000 + depth, duration * 1e9, ts_ns, pid, 1
    FROM python.torch_trace
    WHERE stage = 'backward' AND module <> 'backward'
), usual AS (
    SELECT
        name,
        0 AS kind,
        max(CASE WHEN 2 * count >= {steps} THEN p50_ns ELSE 0 END) AS usual_ns
    FROM trace.regions
    GROUP BY name
    UNION ALL
    SELECT module, 1, median(duration) * 1e9
    FROM python.torch_trace
    WHERE stage = 'backward'
    GROUP BY module
)
SELECT i, arg_max(name, weight), arg_max(duration_ns, weight)
FROM (
    SELECT
        *,
        CASE WHEN more >= excess / 2 THEN 1e18 + depth * 1e15 ELSE more END AS weight
    FROM (
        SELECT *, duration_ns - coalesce(usual_ns, 0) AS more
        FROM (
            SELECT
                name,
                kind,
                depth,
                duration_ns,
                CASE {which} END AS i,
                CASE i {excess} END AS excess
            FROM seen
            WHERE i IS NOT NULL
        )
        LEFT JOIN usual USING (name, kind)
    )
)
GROUP BY i
