-- What collectors and adapters have cost, over time, as they measured themselves.
--
-- ts_ns    BIGINT   when, in ns since the recording began
-- source   VARCHAR  who measured itself
-- events   BIGINT   what it did, since it began
-- cost_ns  BIGINT   CPU time that it took, since it began
-- pid      INTEGER  the process
SELECT
    ts_ns,
    source,
    TRY_CAST(events AS BIGINT) AS events,
    TRY_CAST(cost_ns AS BIGINT) AS cost_ns,
    pid
FROM kymo_scan('kymo.costs')
