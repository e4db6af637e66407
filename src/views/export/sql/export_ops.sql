-- Operations of devices and waits for them, as rows of a track of each queue; see export_rows.h.
WITH
rows AS (
    SELECT
        pid,
        coalesce(device, 'device') || coalesce(' ' || queue, '') AS track_name,
        kind,
        name,
        device,
        queue,
        model,
        queued_ns,
        submit_ns,
        start_ns,
        end_ns,
        bytes,
        zone,
        zone_start_ns,
        core,
        nullif(error_ns, 0) AS error_ns,
        nullif(status, 0) AS status,
        nullif(depends::INTEGER, 0) AS depends,
        nullif(blocking::INTEGER, 0) AS blocking,
        execution,
        correlation,
        depth,
        step,
        tid,
        call,
        call_ns,
        module,
        nullif(communication::INTEGER, 0) AS communication
    FROM device.ops
    UNION ALL BY NAME
    SELECT
        pid,
        coalesce(device, 'device') || ' waits' AS track_name,
        'wait' AS kind,
        device,
        queue,
        start_ns,
        start_ns + duration_ns AS end_ns,
        zone,
        step,
        tid
    FROM device.waits
)
SELECT
    pid,
    track_name,
    dense_rank() OVER (ORDER BY pid, track_name) + 1 AS track,
    coalesce(name, kind) AS name,
    start_ns,
    end_ns,
    * EXCLUDE (pid, track_name, name, start_ns, end_ns),
    start_ns AS start_ns,
    end_ns AS end_ns
FROM rows
ORDER BY track, start_ns
