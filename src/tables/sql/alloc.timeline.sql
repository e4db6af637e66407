-- Allocated memory over time.
--
-- ts_ns       BIGINT   when, in ns since the recording began
-- live_bytes  BIGINT   allocated since watching began, and not freed; an estimate where it is
--         sampled
-- source      VARCHAR  which allocator, how, and whether from the start or by redirected calls,
--         which miss what the constructors of libraries allocate that are loaded later
-- pid         INTEGER  the process
SELECT
    ts_ns,
    round(live_bytes)::BIGINT AS live_bytes,
    source,
    pid
FROM (WITH sessions AS MATERIALIZED (SELECT pid, ts_ns AS began_ns, lead(ts_ns, 1,
        9223372036854775807) OVER w AS until_ns, (count(*) FILTER (place & 7 = 5) OVER w)::INTEGER
        AS session, (row_number() OVER ())::INTEGER AS part, 'malloc, ' || CASE WHEN what &
        1099511627775 > 0 THEN 'sampled' ELSE 'exact' END || CASE WHEN what >> 40 > 0 THEN
        ', from the start' ELSE
        ', calls redirected (missed: constructors of libraries loaded later)' END AS source FROM
        (SELECT pid, ts_ns, place, what FROM kymo_scan('alloc.rows') WHERE place & 7 IN (4, 5))
        WINDOW w AS (PARTITION BY pid ORDER BY ts_ns)), rows AS (SELECT t.pid, t.ts_ns, t.place,
        t.what, coalesce(s.session, 0) AS session, s.part FROM kymo_scan('alloc.rows') t LEFT JOIN
        sessions s ON s.pid = t.pid AND t.ts_ns >= s.began_ns AND t.ts_ns < s.until_ns WHERE
        t.place & 7 NOT IN (4, 5)), levels AS (SELECT pid, ts_ns, session, part, CASE WHEN rank = 2
        THEN 0 ELSE sum(bytes) OVER (PARTITION BY pid, session ORDER BY ts_ns, rank ROWS UNBOUNDED
        PRECEDING) END AS live_bytes FROM (SELECT pid, ts_ns, session, part, CASE WHEN place & 7 >
        3 THEN 2 ELSE place & 1 END::UTINYINT AS rank, (CASE WHEN place & 7 > 3 THEN 0 WHEN place &
        1 = 0 THEN 1 ELSE -1 END) * ((what & 1099511627775)::BIGINT) * (CASE WHEN place & 7 IN (2,
        3) AND what & 1099511627775 > 0 THEN 1 / (1 - exp((what & 1099511627775) / -65536.0)) ELSE
        1 END) AS bytes FROM rows)), last AS (SELECT 1) SELECT l.pid, l.ts_ns, l.live_bytes,
        s.source FROM levels l LEFT JOIN sessions s ON s.part = l.part)
