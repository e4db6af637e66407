-- Steps of the program's main loop.
--
-- step          BIGINT   the step's number
-- name          VARCHAR  the loop's name
-- start_ns      BIGINT   when it began, in ns since the recording began
-- duration_ns   BIGINT   how long it took
-- data_ns       BIGINT   time spent waiting for data; NULL where not known
-- forward_ns    BIGINT   time in forward; NULL where not known
-- backward_ns   BIGINT   time in backward; NULL where not known
-- optimizer_ns  BIGINT   time in the optimizer; NULL where not known
-- pid           INTEGER  the process
-- rank          INTEGER  rank of the process; NULL outside of a distributed run
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
    rank
FROM kymo_scan('trace.steps')
