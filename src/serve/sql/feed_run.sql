-- The command line, the duration, the rank of this recording, the number of ranks and of steps.
SELECT
    command,
    duration_ns,
    (SELECT min(rank) FROM kymo.processes WHERE role = 'target'),
    (SELECT max(ranks) FROM kymo.processes WHERE role = 'target'),
    (SELECT count(*) FROM trace.steps)
FROM kymo.runs
ORDER BY started_unix_ns
LIMIT 1
