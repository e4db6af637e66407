-- Intervals in which a queue was idle, with the cause.
--
-- start_ns     BIGINT   end of the operation before the gap, in ns since the recording began
-- duration_ns  BIGINT   time until the next operation started
-- cause        VARCHAR  host late, synchronisation, dependency or launch
-- device       VARCHAR  device
-- queue        VARCHAR  queue or stream
-- next         VARCHAR  name of the operation after the gap
-- pid          INTEGER  process ID
WITH
{include device_gaps}
SELECT
    free_ns AS start_ns,
    gap_ns AS duration_ns,
    cause,
    device,
    queue,
    name AS next,
    pid
FROM caused
ORDER BY free_ns
