-- Threads of the program with their names, not those of the collector. Zones of an imported trace
-- that overlap are on lanes: threads with the same tid, whose names are longer.
SELECT pid, tid, min(thread)
FROM kymo.threads
WHERE tid IS NOT NULL
    AND pid IN (
        SELECT pid
        FROM kymo.processes
        WHERE role = 'target'
    )
GROUP BY pid, tid
ORDER BY pid, tid
