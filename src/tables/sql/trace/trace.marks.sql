-- Named moments that the program recorded.
--
-- ts_ns   BIGINT   time, in ns since the recording began
-- name    VARCHAR  mark name
-- text    VARCHAR  text of the mark; NULL if it has none
-- step    BIGINT   current step; 0 before the first
-- pid     INTEGER  process ID
-- tid     INTEGER  kernel thread ID
-- thread  VARCHAR  thread name
-- rank    INTEGER  rank of the process; NULL outside a distributed run
-- host    VARCHAR  host name
--
-- A text is stored in parts; a thread numbers its texts from 1. A condition on marks alone would
-- make DuckDB compare every mark with every text.
WITH texts AS (
    SELECT
        process_id,
        thread_id,
        number,
        string_agg(text, '' ORDER BY part) AS text
    FROM kymo_scan('trace.zone_text')
    WHERE kind = {SCHEMA_TEXT_MARK}
    GROUP BY ALL
)
SELECT
    m.ts_ns,
    m.name,
    t.text,
    m.step,
    m.pid,
    m.tid,
    m.thread,
    m.rank,
    m.host
FROM kymo_scan('trace.marks') m
LEFT JOIN texts t
    ON t.process_id = m.process_id
    AND t.thread_id = m.thread_id
    AND t.number = m.text_number
