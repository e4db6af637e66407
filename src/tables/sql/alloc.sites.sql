-- Where memory was allocated, what of it was live at the peak and is at the end.
--
-- stack                    VARCHAR[]  frames, the innermost first
-- live_bytes               BIGINT     allocated there and not freed
-- at_peak_bytes            BIGINT     the same at the peak
-- allocated_bytes          BIGINT     allocated there in all
-- count                    BIGINT     allocations
-- at_peak_error_bytes      BIGINT     how far at_peak_bytes may be off (two standard deviations);
--         0: exact
-- at_peak_estimated_bytes  BIGINT     of at_peak_bytes, what samples stand for and not themselves
--         alone
-- churn_bytes              BIGINT     allocated there and freed within a millisecond
-- site                     VARCHAR    the innermost line of Python, else the innermost function
-- tensor                   BOOLEAN    whether it is memory of a tensor of torch
-- pid                      INTEGER    the process
SELECT
    stack,
    live_bytes::BIGINT AS live_bytes,
    at_peak_bytes::BIGINT AS at_peak_bytes,
    allocated_bytes::BIGINT AS allocated_bytes,
    count::BIGINT AS count,
    at_peak_error_bytes::BIGINT AS at_peak_error_bytes,
    at_peak_estimated_bytes::BIGINT AS at_peak_estimated_bytes,
    churn_bytes::BIGINT AS churn_bytes,
    site,
    tensor,
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
        1 END) AS bytes FROM rows)), tops AS MATERIALIZED (SELECT pid, arg_max(session, live_bytes)
        AS peak_session, arg_max(ts_ns, live_bytes) AS peak_ns, max(session) AS last_session FROM
        levels GROUP BY pid), fates AS (SELECT pid, session, ts_ns, place, what, lead(ts_ns) OVER
        (PARTITION BY pid, session, place & 281474976710648 ORDER BY ts_ns, place & 1 DESC) AS
        freed_ns FROM rows WHERE place & 7 < 4), told AS (SELECT pid, session, ts_ns, place &
        281474976710648 AS ptr, (place >> 48)::INTEGER AS thread_id, (what & 1099511627775)::BIGINT
        AS size, (what >> 40)::INTEGER AS node, CASE WHEN place & 7 > 3 THEN 0 WHEN place & 1 = 0
        THEN 1 ELSE -1 END AS sign, CASE WHEN place & 7 IN (2, 3) AND what & 1099511627775 > 0 THEN
        1 / (1 - exp((what & 1099511627775) / -65536.0)) ELSE 1 END AS weight, freed_ns FROM
        fates), nodes AS (SELECT r.pid, r.node, sum(sign * size * weight) FILTER (r.session =
        p.last_session) AS live_bytes, sum(sign * size * weight) FILTER (r.session = p.peak_session
        AND r.ts_ns <= p.peak_ns) AS at_peak_bytes, sum(sign * size * size * weight * (weight - 1))
        FILTER (r.session = p.peak_session AND r.ts_ns <= p.peak_ns) AS at_peak_variance, sum(sign
        * size * weight) FILTER (r.session = p.peak_session AND r.ts_ns <= p.peak_ns AND weight >
        1) AS at_peak_estimated_bytes, sum(size * weight) FILTER (sign > 0) AS allocated_bytes,
        sum(weight) FILTER (sign > 0) AS count, sum(size * weight) FILTER (sign > 0 AND freed_ns -
        r.ts_ns < 1000000) AS churn_bytes FROM told r JOIN tops p ON p.pid = r.pid GROUP BY r.pid,
        r.node), stacks AS (SELECT * FROM kymo_sites() WHERE (pid, node) IN (SELECT DISTINCT pid,
        (what >> 40)::INTEGER FROM kymo_scan('alloc.rows') WHERE place & 7 < 4)) SELECT r.pid,
        s.stack, s.site, bool_or(s.tensor) AS tensor, round(coalesce(sum(live_bytes), 0)) AS
        live_bytes, round(coalesce(sum(at_peak_bytes), 0)) AS at_peak_bytes, round(2 *
        sqrt(greatest(0, coalesce(sum(at_peak_variance), 0)))) AS at_peak_error_bytes,
        round(coalesce(sum(at_peak_estimated_bytes), 0)) AS at_peak_estimated_bytes,
        round(sum(allocated_bytes)) AS allocated_bytes, round(sum(count)) AS count,
        round(coalesce(sum(churn_bytes), 0)) AS churn_bytes FROM nodes r LEFT JOIN stacks s ON
        s.pid = r.pid AND s.node = r.node GROUP BY r.pid, s.stack, s.site ORDER BY at_peak_bytes
        DESC)
