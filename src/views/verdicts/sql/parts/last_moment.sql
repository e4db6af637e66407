-- The last moment of the ranks, as ns; no rank waits after it. The end of the run, unless all ranks
-- have ended before: their launcher, and kymo, may live longer. The collector reads the figures of
-- each process until it ends; for one without figures the end of the run counts.
(
    SELECT coalesce(least(w.ns, p.ns), w.ns) AS ns
    FROM (SELECT max(started_ns + duration_ns) AS ns FROM kymo.runs) w
    CROSS JOIN (
        SELECT CASE
            WHEN bool_and(r.state NOT IN ('running', 'unknown') AND f.ns IS NOT NULL)
                THEN max(greatest(r.last_ns, f.ns))
        END AS ns
        FROM dist.ranks r
        LEFT JOIN (SELECT host, pid, max(ts_ns) AS ns FROM host.process GROUP BY host, pid) f
            ON f.host IS NOT DISTINCT FROM r.host AND f.pid = r.pid
        WHERE r.pid IS NOT NULL
    ) p
)
