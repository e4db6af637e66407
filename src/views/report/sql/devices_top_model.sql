-- The costliest model that was executed as a whole, and how many there are. Models known by their
-- kernels alone are part of the line on the queue.
SELECT
    model,
    executions,
    first_run_ns,
    p50_ns,
    warm_p99_ns,
    count(*) OVER ()
FROM device.models
SEMI JOIN (
    SELECT host, pid, model
    FROM device.ops
    WHERE kind = 'execution'
) USING (host, pid, model)
ORDER BY total_ns DESC, model, core
LIMIT 1
