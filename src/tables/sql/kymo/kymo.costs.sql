-- CPU time of collectors and adapters over time, as measured by themselves.
--
-- ts_ns    BIGINT   time, in ns since the recording began
-- source   VARCHAR  collector or adapter
-- events   BIGINT   number of events processed, since it began
-- cost_ns  BIGINT   CPU time used, since it began
-- pid      INTEGER  process ID
-- rank     INTEGER  rank of the process; NULL outside a distributed run
-- host     VARCHAR  host name
SELECT
    ts_ns,
    source,
    TRY_CAST(events AS BIGINT) AS events,
    TRY_CAST(cost_ns AS BIGINT) AS cost_ns,
    pid,
    rank,
    host
FROM kymo_scan('kymo.costs')
