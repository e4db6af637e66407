-- Utilisation, memory and power of GPUs, over time.
--
-- ts_ns        BIGINT   time, in ns since the recording began
-- device       INTEGER  number of the GPU
-- util_pct     DOUBLE   share of time with a kernel running; NULL if the GPU does not report it
-- used_bytes   BIGINT   memory in use
-- total_bytes  BIGINT   memory of the GPU
-- power_w      DOUBLE   power in watts; NULL if the GPU does not report it
-- host         VARCHAR  host name
--
-- Values below 0 are not known.
SELECT
    ts_ns,
    device::INTEGER AS device,
    CASE WHEN util_pct >= 0 THEN round(util_pct, 1) END AS util_pct,
    TRY_CAST(used_bytes AS BIGINT) AS used_bytes,
    TRY_CAST(total_bytes AS BIGINT) AS total_bytes,
    CASE WHEN power_w >= 0 THEN round(power_w, 1) END AS power_w,
    host
FROM kymo_scan('host.gpu')
