-- The slowest steps, and how much longer than usual each phase took: data, forward, backward,
-- optimizer, other.
SELECT
    step,
    pid,
    start_ns,
    duration_ns,
    {include unusual phase=d},
    {include unusual phase=f},
    {include unusual phase=b},
    {include unusual phase=o},
    {include unusual phase=rest}
FROM (
    SELECT
        *,
        coalesce(data_ns, 0) AS d,
        coalesce(forward_ns, 0) AS f,
        coalesce(backward_ns, 0) AS b,
        coalesce(optimizer_ns, 0) AS o,
        duration_ns - d - f - b - o AS rest,
        max(d + f + b + o) OVER () > 0 AS known
    FROM {include steps}
)
ORDER BY duration_ns DESC, step
LIMIT 5
