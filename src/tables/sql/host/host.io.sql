-- Bytes read and written by each process, over time.
--
-- ts_ns        BIGINT   time, in ns since the recording began
-- pid          INTEGER  process ID
-- read_bytes   BIGINT   bytes read from storage, since the process began
-- write_bytes  BIGINT   bytes written to storage, since the process began
SELECT
    ts_ns,
    target_pid AS pid,
    TRY_CAST(read_bytes AS BIGINT) AS read_bytes,
    TRY_CAST(write_bytes AS BIGINT) AS write_bytes
FROM kymo_scan('host.io')
