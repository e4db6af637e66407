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
WITH
{include alloc_events},
{include alloc_unpacked},
{include alloc_stacks},
ends AS (
    SELECT pid, max(session) AS last_session
    FROM events
    GROUP BY pid
)
SELECT
    a.size,
    a.weight,
    (SELECT duration_ns FROM kymo_meta('runs')) - a.ts_ns AS age_ns,
    a.ts_ns,
    a.ptr,
    s.site,
    s.tensor,
    s.stack,
    a.pid
FROM unpacked a
JOIN ends e ON e.pid = a.pid AND e.last_session = a.session
LEFT JOIN stacks s ON s.pid = a.pid AND s.node = a.node
WHERE a.sign > 0 AND a.freed_ns IS NULL
ORDER BY a.size DESC
