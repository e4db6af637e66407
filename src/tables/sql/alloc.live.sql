-- What was never freed, the largest first.
--
-- size    BIGINT     its bytes
-- weight  DOUBLE     allocations that this sample stands for; 1: itself alone
-- age_ns  BIGINT     how long it had been there at the end
-- ts_ns   BIGINT     when it was allocated, in ns since the recording began
-- ptr     UBIGINT    the address
-- site    VARCHAR    the innermost line of Python, else the innermost function
-- tensor  BOOLEAN    whether it is memory of a tensor of torch
-- stack   VARCHAR[]  frames, the innermost first
-- pid     INTEGER    the process
SELECT
    size,
    weight,
    age_ns,
    ts_ns,
    ptr,
    site,
    tensor,
    stack,
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
        t.place & 7 NOT IN (4, 5)), fates AS (SELECT pid, session, ts_ns, place, what, lead(ts_ns)
        OVER (PARTITION BY pid, session, place & 281474976710648 ORDER BY ts_ns, place & 1 DESC) AS
        freed_ns FROM rows WHERE place & 7 < 4), told AS (SELECT pid, session, ts_ns, place &
        281474976710648 AS ptr, (place >> 48)::INTEGER AS thread_id, (what & 1099511627775)::BIGINT
        AS size, (what >> 40)::INTEGER AS node, CASE WHEN place & 7 > 3 THEN 0 WHEN place & 1 = 0
        THEN 1 ELSE -1 END AS sign, CASE WHEN place & 7 IN (2, 3) AND what & 1099511627775 > 0 THEN
        1 / (1 - exp((what & 1099511627775) / -65536.0)) ELSE 1 END AS weight, freed_ns FROM
        fates), stacks AS (SELECT * FROM kymo_sites() WHERE (pid, node) IN (SELECT DISTINCT pid,
        (what >> 40)::INTEGER FROM kymo_scan('alloc.rows') WHERE place & 7 < 4)) , ends AS (SELECT
        pid, max(session) AS last_session FROM rows GROUP BY pid) SELECT r.*, (SELECT duration_ns
        FROM kymo_meta('runs')) - r.ts_ns AS age_ns, s.stack, s.site, s.tensor FROM told r JOIN
        ends e ON e.pid = r.pid AND e.last_session = r.session LEFT JOIN stacks s ON s.pid = r.pid
        AND s.node = r.node WHERE r.sign > 0 AND r.freed_ns IS NULL ORDER BY r.size DESC)
