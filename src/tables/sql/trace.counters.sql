-- Values that the program recorded over time.
--
-- ts_ns     BIGINT   when, in ns since the recording began
-- name      VARCHAR  the counter's name
-- value     DOUBLE   its value
-- instance  INTEGER  number of the timer or collector; NULL for others
-- step      BIGINT   the step that ran then; 0 before the first
-- pid       INTEGER  the process
-- tid       INTEGER  the thread's number in the kernel
-- thread    VARCHAR  the thread's name
-- rank      INTEGER  rank of the process; NULL outside of a distributed run
SELECT
    ts_ns,
    name,
    value,
    name_instance AS instance,
    step,
    pid,
    tid,
    thread,
    rank
FROM kymo_scan('trace.counters')
