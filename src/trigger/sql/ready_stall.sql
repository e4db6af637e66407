-- The row has the last step, not the time since: a stall fires once.
SELECT max(step) AS last_step, name, pid, rank
FROM trace.steps
GROUP BY name, pid, rank, host
HAVING (SELECT max(duration_ns) FROM kymo.runs) - max(start_ns + duration_ns)
    > greatest(10 * median(duration_ns), 10e9)
