-- Whether a zone of a process that has not ended by itself has been open for a tenth of the run.
SELECT count(*)
FROM (
    SELECT max(start_ns + age_ns) - max(start_ns) AS ns
    FROM trace.open_zones
    SEMI JOIN (SELECT host, pid FROM kymo.processes WHERE state <> 'ended') USING (host, pid)
    WHERE age_ns IS NOT NULL
)
WHERE ns > 0.1 * {run_ns}
