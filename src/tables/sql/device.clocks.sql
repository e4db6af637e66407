-- Clocks of devices, read beside the host's.
--
-- ts_ns      BIGINT   when, in ns since the recording began
-- device     VARCHAR  the device
-- device_ns  BIGINT   the device's clock then
-- error_ns   BIGINT   by how much the two readings may be apart
-- drift_ppm  DOUBLE   how much faster the device's clock runs, in millionths
-- miss_ns    BIGINT   how far off the readings before had foretold this one
-- pid        INTEGER  the process
SELECT
    ts_ns,
    device,
    TRY_CAST(device_ns AS BIGINT) AS device_ns,
    error_ns,
    round(drift_ppm, 3) AS drift_ppm,
    miss_ns,
    pid
FROM kymo_scan('device.clocks')
