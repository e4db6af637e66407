-- Step times as columns of at most 600 points; each point stands for a group of steps in order of
-- time.
SELECT
    list(x ORDER BY k) AS x,
    list(least ORDER BY k) AS min,
    list(med ORDER BY k) AS med,
    list(most ORDER BY k) AS max,
    list(worst ORDER BY k) AS worst_start_ns
FROM (
    SELECT
        n * parts // c AS k,
        min(n) + any_value(f) AS x,
        min(duration_ns) AS least,
        median(duration_ns) AS med,
        max(duration_ns) AS most,
        arg_max(start_ns, duration_ns) AS worst
    FROM (
        SELECT
            *,
            row_number() OVER (ORDER BY start_ns) - 1 AS n,
            count(*) OVER () AS c,
            least(c, 600) AS parts,
            min(step) OVER () AS f
        FROM {include steps}
    )
    GROUP BY 1
)
