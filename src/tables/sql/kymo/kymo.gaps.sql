-- Intervals in which calls were not traced, with the cause.
--
-- start_ns     BIGINT   start, in ns since the recording began
-- duration_ns  BIGINT   duration
-- cause        VARCHAR  deep recursion, a hook of another tool, …
-- events       BIGINT   number of times this happened in the interval
-- pid          INTEGER  process ID
-- tid          INTEGER  kernel thread ID
-- thread       VARCHAR  thread name
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- host         VARCHAR  host name
SELECT
    start_ns,
    duration_ns,
    cause,
    TRY_CAST(events AS BIGINT) AS events,
    pid,
    tid,
    thread,
    rank,
    host
FROM kymo_scan('kymo.gaps')
