-- Steps, as rows of a track of each process; see export_rows.h.
SELECT
    pid,
    'steps' AS track_name,
    1 AS track,
    name,
    start_ns,
    start_ns + duration_ns AS end_ns,
    step,
    duration_ns,
    data_ns,
    forward_ns,
    backward_ns,
    optimizer_ns
FROM trace.steps
ORDER BY pid, start_ns
