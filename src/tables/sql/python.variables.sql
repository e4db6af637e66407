-- Variables that were watched.
--
-- ts_ns  BIGINT   when, in ns since the recording began
-- step   BIGINT   the step that ran then; 0 before the first
-- func   VARCHAR  the function that the variable is in
-- name   VARCHAR  the variable
-- value  VARCHAR  its repr, cut to a length
-- type   VARCHAR  its type
-- pid    INTEGER  the process
SELECT
    ts_ns,
    step,
    func,
    name,
    value,
    type,
    pid
FROM kymo_scan('python.variables')
