-- The slowest steps, and the zone that explains each: the innermost of those that take half of the
-- step, or else the longest. The join compares the step number first: DuckDB finds equal numbers
-- with a hash table, but would compare times row by row, over millions of zones.
WITH s AS (
    SELECT host, step, pid, start_ns, duration_ns
    FROM {include steps}
    ORDER BY duration_ns DESC, step
    LIMIT 20
), z AS (
    SELECT
        s.start_ns AS at,
        arg_max(
            z.name,
            CASE
                WHEN z.duration_ns >= s.duration_ns / 2 THEN s.duration_ns + z.depth
                ELSE z.duration_ns
            END
        ) AS inside,
        arg_max(
            z.duration_ns,
            CASE
                WHEN z.duration_ns >= s.duration_ns / 2 THEN s.duration_ns + z.depth
                ELSE z.duration_ns
            END
        ) AS inside_ns
    FROM s
    JOIN trace.zones z
        ON z.step = s.step
        AND z.host = s.host
        AND z.pid = s.pid
        AND z.start_ns >= s.start_ns
        AND z.start_ns + z.duration_ns <= s.start_ns + s.duration_ns
    GROUP BY 1
)
SELECT s.* EXCLUDE (host), z.inside, z.inside_ns
FROM s
LEFT JOIN z ON z.at = s.start_ns
ORDER BY s.duration_ns DESC, s.step
