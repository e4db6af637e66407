-- The command line, the duration, the rank of this recording unless it has several, the number of
-- ranks, and the steps of the rank that has most; without ranks those of all processes together.
SELECT
    command,
    duration_ns,
    (
        SELECT CASE WHEN count(DISTINCT rank) = 1 THEN min(rank) END
        FROM kymo.processes
        WHERE role = 'target'
    ),
    (SELECT max(ranks) FROM kymo.processes WHERE role = 'target'),
    (SELECT max(n) FROM (SELECT count(*) AS n FROM trace.steps GROUP BY rank))
FROM kymo.runs
ORDER BY started_unix_ns
LIMIT 1
