-- The host, waiting for a device.
--
-- start_ns     BIGINT   when the host began to wait
-- duration_ns  BIGINT   how long it waited
-- device       VARCHAR  the device
-- queue        VARCHAR  the queue or stream
-- zone         VARCHAR  the zone of the host that waited; NULL: none was open
-- step         BIGINT   the step that ran then; 0 before the first
-- pid          INTEGER  the process
-- tid          INTEGER  the thread's number in the kernel
-- thread       VARCHAR  the thread's name
SELECT
    start_ns,
    end_ns - start_ns AS duration_ns,
    device,
    queue,
    zone,
    step,
    pid,
    tid,
    thread
FROM kymo_scan('device.ops') WHERE kind = 13
