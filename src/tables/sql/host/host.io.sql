-- Bytes read and written by each process, over time.
--
-- ts_ns        BIGINT   time, in ns since the recording began
-- pid          INTEGER  process ID
-- read_bytes   BIGINT   bytes read from storage, since the process began
-- write_bytes  BIGINT   bytes written to storage, since the process began
-- read_calls   BIGINT   system calls that read, since the process began; NULL if not recorded
-- write_calls  BIGINT   system calls that wrote, since the process began
-- moved_bytes  BIGINT   bytes that these calls read and wrote: also of cached files, pipes and
--                       sockets
-- kernel_ns    BIGINT   CPU time in the kernel, since the process began
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- host         VARCHAR  host name
SELECT
    ts_ns,
    target_pid AS pid,
    TRY_CAST(read_bytes AS BIGINT) AS read_bytes,
    TRY_CAST(write_bytes AS BIGINT) AS write_bytes,
    TRY_CAST(read_calls AS BIGINT) AS read_calls,
    TRY_CAST(write_calls AS BIGINT) AS write_calls,
    TRY_CAST(moved_bytes AS BIGINT) AS moved_bytes,
    TRY_CAST(kernel_ns AS BIGINT) AS kernel_ns,
    target_rank AS rank,
    host
FROM kymo_scan('host.io')
