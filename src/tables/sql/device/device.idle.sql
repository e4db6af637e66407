-- Idle time of devices on the critical path: what the host did meanwhile, and the cause.
--
-- step         BIGINT   step that the host was in; 0 in a recording without steps
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- device       VARCHAR  device
-- start_ns     BIGINT   start of what the host did, in ns since the recording began
-- idle_ns      BIGINT   time of it in which nothing ran on the device
-- cause        VARCHAR  data: the host loaded data; synchronisation: it had waited for the device
--                       before it queued more; launch: it called the runtime, or the operation was
--                       on its way; host: it did something else
-- name         VARCHAR  operator, zone or call; for synchronisation the call that waited
-- function     VARCHAR  Python function around it, of own code if there is one
-- file         VARCHAR  file of that function
-- line         INTEGER  line in that file
-- module       VARCHAR  torch module around it
-- zone         VARCHAR  operator around it
-- pid          INTEGER  process ID
-- host         VARCHAR  host name
--
-- The path leaves the device when the host is what it waits for. A run is what lies between two
-- operations on the path. A wait in it is the cause if the operations before it took at least half
-- as long as the device was idle after it: queueing ahead would have hidden that much.
SELECT
    step,
    rank,
    queue AS device,
    start_ns,
    duration_ns AS idle_ns,
    kind AS cause,
    name,
    function,
    file,
    line,
    module,
    zone,
    pid,
    host
FROM kymo_critical_idle()
ORDER BY start_ns
