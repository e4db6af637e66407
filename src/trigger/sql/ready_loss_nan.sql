-- The first such value of each counter or variable.
SELECT name, min(step) AS step, pid, rank
FROM (
    SELECT name, step, pid, rank
    FROM trace.counters
    WHERE name ILIKE '%loss%' AND (isnan(value) OR isinf(value))
    UNION ALL
    SELECT name, step, pid, rank
    FROM python.variables
    WHERE name ILIKE '%loss%' AND regexp_matches(value, '\b(nan|inf)\b')
)
GROUP BY name, pid, rank
