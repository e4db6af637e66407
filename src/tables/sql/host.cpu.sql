-- How busy the machine was, over time.
--
-- ts_ns         BIGINT   when, in ns since the recording began
-- cpu           INTEGER  the core; NULL: all together
-- busy_pct      DOUBLE   share of time that it worked
-- iowait_pct    DOUBLE   share of time that it waited for I/O
-- pressure_pct  DOUBLE   share of time that something waited for a core
SELECT
    ts_ns,
    CASE WHEN cpu >= 0 THEN cpu END AS cpu,
    round(busy_pct, 1) AS busy_pct,
    round(iowait_pct, 1) AS iowait_pct,
    round(pressure_pct, 1) AS pressure_pct
FROM kymo_scan('host.cpu')
