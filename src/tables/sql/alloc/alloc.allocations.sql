-- Allocations and frees: all of them, or a sample.
--
-- ts_ns        BIGINT     time, in ns since the recording began
-- kind         VARCHAR    alloc or free
-- ptr          UBIGINT    address
-- size         BIGINT     size in bytes
-- weight       DOUBLE     number of allocations that the sample represents; 1 if not sampled
-- device       VARCHAR    device; NULL for the host
-- tid          INTEGER    kernel thread ID
-- stack        VARCHAR[]  frames, innermost first
-- lifetime_ns  BIGINT     time from the allocation to its free; NULL if it was not freed, and for a
--                         free
-- site         VARCHAR    innermost Python line, or the innermost function without Python
-- pid          INTEGER    process ID
-- rank         INTEGER    rank of the process; NULL outside a distributed run
-- host         VARCHAR    host name
--
-- A row stores the thread's number within its process.
WITH
{include alloc_events},
{include alloc_unpacked},
{include alloc_stacks},
numbered_threads AS (
    SELECT
        process_id,
        tid,
        row_number() OVER (PARTITION BY process_id ORDER BY thread_id) AS thread_id
    FROM kymo_meta('threads')
)
SELECT
    a.ts_ns,
    CASE WHEN a.sign > 0 THEN 'alloc' ELSE 'free' END AS kind,
    a.ptr,
    a.size,
    a.weight,
    NULL::VARCHAR AS device,
    t.tid,
    s.stack,
    CASE WHEN a.sign > 0 THEN a.freed_ns - a.ts_ns END AS lifetime_ns,
    s.site,
    p.pid,
    p.rank,
    p.host
FROM unpacked a
JOIN kymo_meta('processes') p ON p.process_id = a.process_id
LEFT JOIN stacks s ON s.process_id = a.process_id AND s.node = a.node
LEFT JOIN numbered_threads t ON t.process_id = a.process_id AND t.thread_id = a.thread_id
