-- Events of imported traces, by what became of them.
--
-- file      VARCHAR  trace file
-- category  VARCHAR  category of the events; empty if they have none
-- phase     VARCHAR  phase of the events: X (complete), i (instant), M (metadata), …
-- events    BIGINT   number of events
-- became    VARCHAR  table that has their rows, or the reason why they have none
-- kept      BOOLEAN  true if they are rows of a table
-- pid       INTEGER  process ID
-- host      VARCHAR  host name
SELECT
    file,
    category,
    CASE WHEN phase > 0 THEN chr(phase::INTEGER) END AS phase,
    TRY_CAST(events AS BIGINT) AS events,
    became,
    kept = 1 AS kept,
    pid,
    host
FROM kymo_scan('kymo.imports')
ORDER BY file, events DESC
