-- Utilisation, memory and power of GPUs, over time.
--
-- ts_ns        BIGINT   when, in ns since the recording began
-- device       INTEGER  the GPU's number
-- util_pct     DOUBLE   share of time with a kernel running; NULL where the card does not tell
-- used_bytes   BIGINT   memory in use
-- total_bytes  BIGINT   memory in all
-- power_w      DOUBLE   power in watts; NULL where the card does not tell
SELECT
    ts_ns,
    device::INTEGER AS device,
    CASE WHEN util_pct >= 0 THEN round(util_pct, 1) END AS util_pct,
    TRY_CAST(used_bytes AS BIGINT) AS used_bytes,
    TRY_CAST(total_bytes AS BIGINT) AS total_bytes,
    CASE WHEN power_w >= 0 THEN round(power_w, 1) END AS power_w
FROM kymo_scan('host.gpu')
