-- Idle time of devices on the critical path, by cause and by what the host did meanwhile.
--
-- rank      INTEGER  rank of the process; NULL outside a distributed run
-- device    VARCHAR  device
-- cause     VARCHAR  as in device.idle
-- name      VARCHAR  operator, zone or call; for synchronisation the call that waited
-- idle_ns   BIGINT   time in which nothing ran on the device
-- count     BIGINT   number of rows of device.idle
-- function  VARCHAR  Python function around it, of own code if there is one
-- file      VARCHAR  file of that function
-- line      INTEGER  line in that file
-- module    VARCHAR  torch module around it
-- zone      VARCHAR  operator around it
-- pid       INTEGER  process ID
-- host      VARCHAR  host name
--
-- The sums of device.idle, which may have millions of rows.
SELECT
    rank,
    queue AS device,
    kind AS cause,
    name,
    duration_ns AS idle_ns,
    step AS count,
    function,
    file,
    line,
    module,
    zone,
    pid,
    host
FROM kymo_critical_idle_sums()
ORDER BY duration_ns DESC
