-- Models by total time; the device is named if there are several.
SELECT
    model,
    CASE WHEN (SELECT count(DISTINCT device) FROM device.models) > 1 THEN device END,
    core,
    executions,
    first_run_ns,
    p50_ns,
    warm_p99_ns,
    total_ns,
    count(*) OVER ()
FROM device.models
ORDER BY total_ns DESC, model, core
LIMIT {limit}
