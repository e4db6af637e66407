-- The critical path as zones, one track for each rank that it passes, in the columns of
-- device_lanes. Parts that overlap by rounding go one row down.
SELECT
    pid,
    -3,
    0,
    start_ns,
    duration_ns,
    kind,
    name,
    file,
    line,
    'critical path',
    rank,
    host
FROM trace.critical_path
WHERE duration_ns > 0
ORDER BY start_ns
