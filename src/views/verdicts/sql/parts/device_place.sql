-- The function of the program's own code that uses the device by the rows in {of} (pid, tid, zone,
-- as device.ops and device.waits have them): one row with place and share, or none. By the samples
-- of the threads that queue, inside waits for the device ({inside} is true) or outside of them; or
-- else, as of an imported trace, the zone that was open, with its line if it is known.
(
    WITH used AS (
        FROM {of}
    ), threads AS (
        SELECT DISTINCT pid, tid
        FROM used
    ), sampled AS (
        SELECT a.place, a.weight
        FROM (
            SELECT pid, tid, ts_ns, place, weight
            FROM {include sampled_threads}
            SEMI JOIN threads USING (pid, tid)
            WHERE place IS NOT NULL AND NOT {include in_import}
        ) AS a
        ASOF LEFT JOIN device.waits AS w
            ON a.pid = w.pid AND a.tid = w.tid AND a.ts_ns >= w.start_ns
        WHERE coalesce(a.ts_ns < w.start_ns + w.duration_ns, false) = {inside}
    ), zones AS (
        SELECT pid, zone, count(*) AS n
        FROM used
        WHERE zone IS NOT NULL
        GROUP BY ALL
    ), marked AS (
        SELECT coalesce(r.place, z.zone) AS place, z.n AS weight
        FROM zones AS z
        LEFT JOIN (
            SELECT pid, name, any_value(name || ' (' || file || ':' || line || ')') AS place
            FROM trace.regions
            WHERE contains(file, '/') AND line > 0
            GROUP BY ALL
        ) AS r ON r.pid = z.pid AND r.name = z.zone
    ), best AS (
        SELECT place, share, 1 AS choice
        FROM {include top_place from=sampled}
        WHERE n >= 5
        UNION ALL
        SELECT place, share, 2
        FROM {include top_place from=marked}
    )
    SELECT place, share
    FROM best
    ORDER BY choice
    LIMIT 1
)
