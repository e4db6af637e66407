-- Highest rates of devices, against which torch.flops compares: kymo run --peak-flops.
--
-- ts_ns        BIGINT   time at which it was recorded, in ns since the recording began
-- device       VARCHAR  device; NULL if the rate was given
-- dtype        VARCHAR  element type; NULL for all
-- flops_per_s  DOUBLE   floating-point operations per second
-- origin       VARCHAR  given (by the user), known (of that GPU) or measured (on this CPU)
-- pid          INTEGER  process ID
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- host         VARCHAR  host name
SELECT
    ts_ns,
    nullif(device, '') AS device,
    nullif(dtype, '') AS dtype,
    flops_per_s,
    origin,
    pid,
    rank,
    host
FROM kymo_scan('torch.peaks')
