-- Triggers that fired, and what was done and saved: one row for each action.
--
-- ts_ns    BIGINT   time, in ns since the recording began
-- trigger  VARCHAR  name of the trigger
-- action   VARCHAR  action; suppressed: it fired within its cool-down or beyond its limits;
--                   slowed: its condition is asked less often, because it costs too much
-- result   VARCHAR  ok, or a sentence that says why not
-- rows     BIGINT   number of rows that the condition returned for the first time
-- row      VARCHAR  the first of these rows, as JSON, truncated
-- saved    VARCHAR  saved file, below the directory of the recording; NULL if none
-- bytes    BIGINT   size of the saved file; NULL if none
-- host     VARCHAR  host name
SELECT
    ts_ns,
    trigger,
    action,
    result,
    rows::BIGINT AS rows,
    nullif(row, '') AS row,
    nullif(saved, '') AS saved,
    nullif(bytes, 0)::BIGINT AS bytes,
    host
FROM kymo_scan('kymo.triggers')
