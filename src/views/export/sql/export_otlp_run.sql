-- The run as the root of its spans, and the trace that it was started in.
SELECT
    started_unix_ns,
    duration_ns,
    program,
    command,
    host,
    pid,
    state,
    (SELECT arg_min(text, ts_ns) FROM trace.marks WHERE name = '{TRACEPARENT_MARK}')
FROM kymo.runs
ORDER BY started_unix_ns
LIMIT 1
