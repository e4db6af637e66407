-- Allocations and frees: samples of them, or all.
--
-- ts_ns        BIGINT     when, in ns since the recording began
-- kind         VARCHAR    alloc or free
-- ptr          UBIGINT    the address
-- size         BIGINT     its bytes
-- weight       DOUBLE     allocations that this sample stands for; 1: itself alone
-- device       VARCHAR    the device; NULL for the host
-- tid          INTEGER    the thread's number in the kernel
-- stack        VARCHAR[]  frames, the innermost first
-- lifetime_ns  BIGINT     of an allocation: until it was freed; NULL where it was not
-- site         VARCHAR    the innermost line of Python, else the innermost function
-- pid          INTEGER    the process
SELECT
    ts_ns,
    CASE WHEN sign > 0 THEN 'alloc' ELSE 'free' END AS kind,
    ptr,
    size,
    weight,
    NULL::VARCHAR AS device,
    tid,
    stack,
    CASE WHEN sign > 0 THEN freed_ns - ts_ns END AS lifetime_ns,
    site,
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
        (what >> 40)::INTEGER FROM kymo_scan('alloc.rows') WHERE place & 7 < 4)) SELECT r.*,
        s.stack, s.site, t.tid FROM told r LEFT JOIN stacks s ON s.pid = r.pid AND s.node = r.node
        LEFT JOIN (SELECT pid, tid, row_number() OVER (PARTITION BY pid ORDER BY thread_id) AS
        thread_id FROM kymo_meta('threads')) t ON t.pid = r.pid AND t.thread_id = r.thread_id)
