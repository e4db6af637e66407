-- Allocated memory over time.
--
-- ts_ns       BIGINT   time, in ns since the recording began
-- live_bytes  BIGINT   bytes allocated since recording of allocations began and not freed; an
--                      estimate if sampled
-- source      VARCHAR  allocator, mode, and whether recorded from the start or by redirected calls,
--                      which miss allocations by constructors of libraries loaded later
-- pid         INTEGER  process ID
-- rank        INTEGER  rank of the process; NULL outside a distributed run
-- host        VARCHAR  host name
WITH
{include alloc_events},
{include alloc_levels}
SELECT
    l.ts_ns,
    round(l.live_bytes)::BIGINT AS live_bytes,
    s.source,
    p.pid,
    p.rank,
    p.host
FROM levels l
JOIN kymo_meta('processes') p ON p.process_id = l.process_id
LEFT JOIN sessions s ON s.part = l.part
