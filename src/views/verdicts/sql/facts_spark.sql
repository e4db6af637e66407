-- The longest step of each of {parts} parts with the same number of steps; {steps} is how many
-- steps there are.
SELECT (n - 1) * {parts} // {steps}, max(duration_ns)
FROM (
    SELECT duration_ns, row_number() OVER (ORDER BY start_ns) AS n
    FROM {include steps}
)
GROUP BY 1
