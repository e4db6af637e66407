-- Texts and values that belong to zones.
--
-- start_ns  BIGINT   when the zone began that it belongs to
-- name      VARCHAR  that zone's name
-- text      VARCHAR  the text; NULL for a value
-- value     UBIGINT  the value; NULL for a text
-- pid       INTEGER  the process
-- tid       INTEGER  the thread's number in the kernel
-- thread    VARCHAR  the thread's name
SELECT
    start_ns,
    name,
    CASE WHEN kind = 0 THEN text END AS text,
    CASE WHEN kind = 2 THEN value END AS value,
    pid,
    tid,
    thread
FROM (SELECT pid, thread_id, number, kind, min(at_ns) AS start_ns, any_value(name) AS name,
        any_value(value) AS value, any_value(tid) AS tid, any_value(thread) AS thread,
        string_agg(text, '' ORDER BY part) AS text FROM kymo_scan('trace.zone_text') WHERE kind <>
        1 GROUP BY ALL)
