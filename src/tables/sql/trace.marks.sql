-- Moments that the program named.
--
-- ts_ns   BIGINT   when, in ns since the recording began
-- name    VARCHAR  the mark's name
-- text    VARCHAR  its text; NULL where it has none
-- step    BIGINT   the step that ran then; 0 before the first
-- pid     INTEGER  the process
-- tid     INTEGER  the thread's number in the kernel
-- thread  VARCHAR  the thread's name
-- rank    INTEGER  rank of the process; NULL outside of a distributed run
SELECT
    ts_ns,
    m.name AS name,
    t.text AS text,
    m.step AS step,
    m.pid AS pid,
    m.tid AS tid,
    m.thread AS thread,
    m.rank AS rank
FROM kymo_scan('trace.marks') m LEFT JOIN (SELECT pid, thread_id, number, string_agg(text, '' ORDER
        BY part) AS text FROM kymo_scan('trace.zone_text') WHERE kind = 1 GROUP BY ALL) t ON
        m.text_number > 0 AND t.pid = m.pid AND t.thread_id = m.thread_id AND t.number =
        m.text_number
