-- Waits of the host for a device.
--
-- start_ns     BIGINT   start of the wait, in ns since the recording began
-- duration_ns  BIGINT   duration
-- device       VARCHAR  device
-- queue        VARCHAR  queue or stream
-- zone         VARCHAR  host zone that waited; NULL if none was open
-- step         BIGINT   current step; 0 before the first
-- pid          INTEGER  process ID
-- tid          INTEGER  kernel thread ID
-- thread       VARCHAR  thread name
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- host         VARCHAR  host name
SELECT
    start_ns,
    end_ns - start_ns AS duration_ns,
    device,
    queue,
    zone,
    step,
    pid,
    tid,
    thread,
    rank,
    host
FROM kymo_scan('device.ops')
WHERE kind = {KYMO_DEVICE_WAIT}
