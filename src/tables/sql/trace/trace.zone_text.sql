-- Texts and values attached to zones.
--
-- start_ns  BIGINT   start of the zone, in ns since the recording began
-- name      VARCHAR  zone name
-- text      VARCHAR  text; NULL for a value
-- value     UBIGINT  value; NULL for a text
-- pid       INTEGER  process ID
-- tid       INTEGER  kernel thread ID
-- thread    VARCHAR  thread name
-- rank      INTEGER  rank of the process; NULL outside a distributed run
-- host      VARCHAR  host name
--
-- A text is stored in parts; a thread numbers its texts from 1.
WITH texts AS (
    SELECT
        process_id,
        thread_id,
        number,
        kind,
        min(at_ns) AS start_ns,
        any_value(name) AS name,
        string_agg(text, '' ORDER BY part) AS text,
        any_value(value) AS value,
        any_value(tid) AS tid,
        any_value(thread) AS thread,
        any_value(pid) AS pid,
        any_value(rank) AS rank,
        any_value(host) AS host
    FROM kymo_scan('trace.zone_text')
    WHERE kind <> {SCHEMA_TEXT_MARK}
    GROUP BY process_id, thread_id, number, kind
)
SELECT
    start_ns,
    name,
    CASE WHEN kind = {SCHEMA_TEXT_ZONE} THEN text END AS text,
    CASE WHEN kind = {SCHEMA_TEXT_VALUE} THEN value END AS value,
    pid,
    tid,
    thread,
    rank,
    host
FROM texts
