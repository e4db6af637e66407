SELECT
    program,
    command,
    pid,
    state,
    exit_code,
    signal,
    duration_ns,
    started_unix_ns,
    clock,
    clock_error_ns,
    version,
    (SELECT min(rank) FROM kymo.processes WHERE role = 'target') AS rank,
    (SELECT max(ranks) FROM kymo.processes WHERE role = 'target') AS ranks
FROM kymo.runs
ORDER BY started_unix_ns
LIMIT 1
