-- Steps of the program's main loop.
--
-- step          BIGINT   step number
-- name          VARCHAR  name of the loop
-- start_ns      BIGINT   start, in ns since the recording began
-- duration_ns   BIGINT   duration
-- data_ns       BIGINT   time waiting for data; NULL if not known
-- forward_ns    BIGINT   time in forward; NULL if not known
-- backward_ns   BIGINT   time in backward; NULL if not known
-- optimizer_ns  BIGINT   time in the optimizer; NULL if not known
-- pid           INTEGER  process ID
-- rank          INTEGER  rank of the process; NULL outside a distributed run
-- host          VARCHAR  host name
SELECT
    step,
    name,
    start_ns,
    duration_ns,
    nullif(data_ns, 0) AS data_ns,
    nullif(forward_ns, 0) AS forward_ns,
    nullif(backward_ns, 0) AS backward_ns,
    nullif(optimizer_ns, 0) AS optimizer_ns,
    pid,
    rank,
    host
FROM kymo_scan('trace.steps')
