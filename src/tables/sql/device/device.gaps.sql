-- Intervals in which a queue was idle, with the cause.
--
-- start_ns     BIGINT   end of the operation before the gap, in ns since the recording began
-- duration_ns  BIGINT   time until the next operation started
-- cause        VARCHAR  host late, synchronisation, dependency or launch
-- device       VARCHAR  device
-- queue        VARCHAR  queue or stream
-- next         VARCHAR  name of the operation after the gap
-- pid          INTEGER  process ID
-- queued_ns    BIGINT   time at which the host queued the next operation; NULL if not known
-- core         INTEGER  core, or number of the queue in order of creation
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- host         VARCHAR  host name
WITH
{include device_gaps}
SELECT
    free_ns AS start_ns,
    gap_ns AS duration_ns,
    cause,
    device,
    queue,
    name AS next,
    pid,
    queued_ns,
    core,
    rank,
    host
FROM caused
ORDER BY free_ns
