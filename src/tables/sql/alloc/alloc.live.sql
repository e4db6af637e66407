-- Memory that was never freed, largest first.
--
-- size    BIGINT     size in bytes
-- weight  DOUBLE     number of allocations that the sample represents; 1 if not sampled
-- age_ns  BIGINT     time from the allocation to the end of the recording
-- ts_ns   BIGINT     time of the allocation, in ns since the recording began
-- ptr     UBIGINT    address
-- site    VARCHAR    innermost Python line, or the innermost function without Python
-- tensor  BOOLEAN    true for the memory of torch tensors
-- stack   VARCHAR[]  frames, innermost first
-- pid     INTEGER    process ID
-- rank    INTEGER    rank of the process; NULL outside a distributed run
-- host    VARCHAR    host name
WITH
{include alloc_events},
{include alloc_unpacked},
{include alloc_stacks},
ends AS (
    SELECT process_id, max(session) AS last_session
    FROM events
    GROUP BY process_id
)
SELECT
    a.size,
    a.weight,
    (SELECT max(started_ns + duration_ns) FROM kymo_meta('runs')) - a.ts_ns AS age_ns,
    a.ts_ns,
    a.ptr,
    s.site,
    s.tensor,
    s.stack,
    p.pid,
    p.rank,
    p.host
FROM unpacked a
JOIN kymo_meta('processes') p ON p.process_id = a.process_id
JOIN ends e ON e.process_id = a.process_id AND e.last_session = a.session
LEFT JOIN stacks s ON s.process_id = a.process_id AND s.node = a.node
WHERE a.sign > 0 AND a.freed_ns IS NULL
ORDER BY a.size DESC
