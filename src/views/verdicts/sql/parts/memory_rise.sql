-- The function of the program's own code in which the memory of the processes in {of} rose, from
-- their from_ns on: one row as of top_place, or none.
--
-- A rise is shared among the samples around it, in proportion to how much each function has risen
-- while it ran: a first round shares it evenly, the second by the rates of the first. Rises that
-- are known to 5 ms decide if there are enough of them, since a short function among long ones is
-- else never seen to allocate; then all others. The square of a rate stands for further rounds.
-- A thread that waits allocates nothing: rises around which one was seen to run count first, then
-- what ran at any time, then what waits.
--
-- Where no rise is known to 5 ms (a fixed sample_rate), each sample stands for several functions:
-- one is named if memory rose half as fast again around its samples as around all, or if it has
-- nine tenths of the time.
(
    WITH samples AS (
        SELECT
            host,
            pid,
            ts_ns,
            place,
            {include place_function} AS function,
            weight,
            weight * CASE WHEN state = 'R' THEN 1 ELSE 0.001 END AS part
        FROM {include weighted_samples}
        SEMI JOIN {of} USING (host, pid)
        WHERE place IS NOT NULL AND weight > 0 AND NOT {include in_import}
    ), read AS (
        SELECT host, pid, ts_ns, rss_bytes, since_ns
        FROM host.memory
        UNION ALL
        SELECT host, pid, ts_ns, rss_bytes, NULL
        FROM host.process
    ), rises AS (
        SELECT host, pid, ts_ns, since_ns, rise, since_ns BETWEEN 1 AND 5000000 AS exact
        FROM (
            SELECT
                host,
                pid,
                ts_ns,
                coalesce(since_ns, ts_ns - lag(ts_ns) OVER w) AS since_ns,
                rss_bytes - lag(rss_bytes) OVER w AS rise
            FROM read
            WHERE rss_bytes > 0
            WINDOW w AS (PARTITION BY host, pid ORDER BY ts_ns)
        )
        JOIN {of} AS o USING (host, pid)
        WHERE rise > 0 AND since_ns > 0 AND ts_ns >= o.from_ns
    ), precision AS (
        SELECT
            coalesce(
                count(*) FILTER (exact) >= 5 AND sum(rise) FILTER (exact) > 0.01 * sum(rise),
                false
            ) AS precise
        FROM rises
    ), used AS (
        SELECT *
        FROM rises, precision
        WHERE exact OR NOT precise
    ), around AS (
        SELECT
            u.host,
            u.pid,
            u.ts_ns AS moment,
            u.rise,
            max(s.part / s.weight) OVER (PARTITION BY u.host, u.pid, u.ts_ns) = 1 AS ran,
            s.place,
            s.function,
            s.part
        FROM used AS u
        JOIN samples AS s
            ON s.host = u.host
            AND s.pid = u.pid
            AND s.ts_ns <= u.ts_ns
            AND s.ts_ns > u.ts_ns - u.since_ns - 500000
    ), evenly AS (
        SELECT function, sum(share) AS bytes
        FROM (
            SELECT function, rise * part / sum(part) OVER (PARTITION BY host, pid, moment) AS share
            FROM around
        )
        GROUP BY function
    ), rates AS (
        SELECT
            e.function,
            e.bytes / t.time AS rate,
            rate > 1.5 * sum(e.bytes) OVER () / sum(t.time) OVER ()
                OR t.time > 0.9 * sum(t.time) OVER ()
                OR (SELECT precise FROM precision) AS known
        FROM evenly AS e
        JOIN (
            SELECT function, sum(weight) AS time
            FROM samples
            WHERE weight <= 5000000 OR NOT (SELECT precise FROM precision)
            GROUP BY function
        ) AS t USING (function)
    ), shared AS (
        SELECT
            a.place,
            CASE WHEN a.ran THEN 1e9 ELSE 1e-6 END * a.rise * a.part * r.rate ^ 2
                / sum(a.part * r.rate ^ 2) OVER (PARTITION BY a.host, a.pid, a.moment) AS weight
        FROM around AS a
        JOIN rates AS r USING (function)
        UNION ALL
        SELECT place, part
        FROM samples
        WHERE part = weight
    )
    SELECT *
    FROM {include top_place from=shared}
    WHERE coalesce(
        (SELECT known FROM rates WHERE function = {include place_function}),
        (SELECT count(*) = 0 FROM rates)
    )
)
