-- The functions of own code in the last seconds: self time, total time, and the part of the self
-- time on a CPU. A function counts once in a stack. Native samples: of threads without Python.
WITH p AS MATERIALIZED (
    SELECT pid, tid, place, stack, state = 'R' AS running, coalesce(weight_ns, 10000000) AS weight
    FROM kymo_samples(from_ns := {from_ns})
    WHERE cause = 'period'
), s AS MATERIALIZED (
    SELECT row_number() OVER () AS n, place, stack, running, weight
    FROM (
        SELECT place, stack, running, weight
        FROM p
        UNION ALL
        SELECT place, stack, activity = 'running', weight_ns
        FROM kymo_native_samples(from_ns := {from_ns})
        WHERE (pid, tid) NOT IN (SELECT DISTINCT pid, tid FROM p) AND NOT {include native_idle}
    )
), f AS (
    SELECT
        {include place_function} AS function,
        {include place_label} AS label,
        sum(weight) AS self,
        sum(weight) FILTER (running) AS running
    FROM s
    WHERE place IS NOT NULL
    GROUP BY function
), t AS (
    SELECT place AS function, sum(weight) AS total
    FROM (
        SELECT DISTINCT n, weight, {include place_function} AS place
        FROM (SELECT n, weight, unnest(stack) AS place FROM s)
    )
    GROUP BY place
)
SELECT f.label, f.self, t.total, coalesce(f.running, 0)
FROM f
LEFT JOIN t ON t.function = f.function
ORDER BY f.self DESC, f.label
LIMIT {TOP_PLACES}
