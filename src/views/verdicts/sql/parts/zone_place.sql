-- The costliest function of the program's own code during the zones of the region in {of}, which
-- has bare_name, source and n: one row as of top_place, or none. Zones are read if there are not
-- too many.
(
    WITH zones_of AS (
        SELECT z.host, z.pid, z.tid, z.start_ns, z.duration_ns
        FROM trace.zones z
        JOIN {of} AS o ON z.name = o.bare_name AND z.source = o.source
        WHERE o.n <= 200000
    ), samples_in AS (
        SELECT a.place, a.weight
        FROM (
            SELECT host, pid, tid, ts_ns, place, weight
            FROM {include weighted_samples}
            WHERE place IS NOT NULL
        ) AS a
        ASOF JOIN zones_of AS z
            ON a.host = z.host AND a.pid = z.pid AND a.tid = z.tid AND a.ts_ns >= z.start_ns
        WHERE a.ts_ns < z.start_ns + z.duration_ns
    )
    FROM {include top_place from=samples_in}
)
