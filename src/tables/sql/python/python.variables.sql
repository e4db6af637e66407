-- Values of watched variables.
--
-- ts_ns  BIGINT   time, in ns since the recording began
-- step   BIGINT   current step; 0 before the first
-- func   VARCHAR  function that contains the variable
-- name   VARCHAR  variable name
-- value  VARCHAR  repr() of the value, truncated
-- type   VARCHAR  type of the value
-- pid    INTEGER  process ID
-- rank   INTEGER  rank of the process; NULL outside a distributed run
-- host   VARCHAR  host name
SELECT
    ts_ns,
    step,
    func,
    name,
    value,
    type,
    pid,
    rank,
    host
FROM kymo_scan('python.variables')
