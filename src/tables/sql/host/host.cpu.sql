-- CPU utilisation of the machine, over time.
--
-- ts_ns         BIGINT   time, in ns since the recording began
-- cpu           INTEGER  core; NULL for all cores together
-- busy_pct      DOUBLE   share of time in which it was busy
-- iowait_pct    DOUBLE   share of time in which it waited for I/O
-- pressure_pct  DOUBLE   share of time in which a task waited for a core
-- host          VARCHAR  host name
SELECT
    ts_ns,
    CASE WHEN cpu >= 0 THEN cpu END AS cpu,
    round(busy_pct, 1) AS busy_pct,
    round(iowait_pct, 1) AS iowait_pct,
    round(pressure_pct, 1) AS pressure_pct,
    host
FROM kymo_scan('host.cpu')
