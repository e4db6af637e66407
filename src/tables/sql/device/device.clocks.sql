-- Device clocks, read together with the host clock.
--
-- ts_ns      BIGINT   time, in ns since the recording began
-- device     VARCHAR  device
-- device_ns  BIGINT   reading of the device clock
-- error_ns   BIGINT   largest time between the two readings
-- drift_ppm  DOUBLE   rate of the device clock above that of the host clock, in ppm
-- miss_ns    BIGINT   error of the prediction from earlier readings
-- pid        INTEGER  process ID
-- rank       INTEGER  rank of the process; NULL outside a distributed run
-- host       VARCHAR  host name
SELECT
    ts_ns,
    device,
    TRY_CAST(device_ns AS BIGINT) AS device_ns,
    error_ns,
    round(drift_ppm, 3) AS drift_ppm,
    miss_ns,
    pid,
    rank,
    host
FROM kymo_scan('device.clocks')
