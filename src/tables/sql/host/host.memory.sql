-- Memory of each process over time, a row whenever it has changed by 256 KiB or more.
--
-- ts_ns      BIGINT   time, in ns since the recording began
-- pid        INTEGER  process ID
-- rss_bytes  BIGINT   resident memory
-- since_ns   BIGINT   time since the memory was last read, so that the change happened within it;
--                     0 in the first row of a process
-- rank       INTEGER  rank of the process; NULL outside a distributed run
-- host       VARCHAR  host name
--
-- The memory of a Python process is read with each of its stack samples, and faster for 50 ms of
-- each second in which it grows; that of others every 10 ms in the first second, then every 100 ms.
SELECT
    ts_ns,
    target_pid AS pid,
    TRY_CAST(rss_bytes AS BIGINT) AS rss_bytes,
    TRY_CAST(since_ns AS BIGINT) AS since_ns,
    target_rank AS rank,
    host
FROM kymo_scan('host.memory')
