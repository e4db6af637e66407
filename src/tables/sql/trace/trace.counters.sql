-- Values that the program recorded over time.
--
-- ts_ns     BIGINT   time, in ns since the recording began
-- name      VARCHAR  counter name
-- value     DOUBLE   value
-- instance  INTEGER  number of the timer or collector; NULL for other counters
-- step      BIGINT   current step; 0 before the first
-- pid       INTEGER  process ID
-- tid       INTEGER  kernel thread ID
-- thread    VARCHAR  thread name
-- rank      INTEGER  rank of the process; NULL outside a distributed run
-- host      VARCHAR  host name
SELECT
    ts_ns,
    name,
    value,
    name_instance AS instance,
    step,
    pid,
    tid,
    thread,
    rank,
    host
FROM kymo_scan('trace.counters')
