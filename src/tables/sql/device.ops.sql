-- Operations of devices, in times of the host.
--
-- device         VARCHAR  the device
-- queue          VARCHAR  the queue or stream
-- model          VARCHAR  the model or program that it belongs to
-- kind           VARCHAR  kernel, read, write, copy, fill, map, unmap, migrate, marker, barrier,
--         native or other; execution: a model's run as a whole; module: a part of one
-- name           VARCHAR  the operation's name
-- queued_ns      BIGINT   when the host queued it
-- submit_ns      BIGINT   when it was given to the device
-- start_ns       BIGINT   when the device began
-- end_ns         BIGINT   when the device was done
-- bytes          BIGINT   what it moved
-- zone           VARCHAR  the zone of the host that queued it; NULL: none was open
-- zone_start_ns  BIGINT   when that zone began: with tid, its row in trace.zones
-- core           INTEGER  the core, or the queue's number in order of creation
-- error_ns       BIGINT   how far the four times may be off the host's clock
-- status         INTEGER  0, or the runtime's error
-- depends        BOOLEAN  it had to wait for other operations
-- blocking       BOOLEAN  the call that queued it waited for its end
-- execution      BIGINT   number of the model's execution that it is a part of
-- correlation    UBIGINT  the runtime's own number
-- depth          INTEGER  of a module: how many others it is inside of
-- step           BIGINT   the step that ran then; 0 before the first
-- pid            INTEGER  the process
-- tid            INTEGER  the thread's number in the kernel
-- thread         VARCHAR  the thread's name
SELECT
    device,
    queue,
    model,
    ['kernel', 'read', 'write', 'copy', 'fill', 'map', 'unmap', 'migrate', 'marker', 'barrier',
        'native', 'other', 'execution', 'wait', 'module', '?'][kind + 1] AS kind,
    name,
    CASE WHEN (flags & 256) > 0 THEN queued_ns END AS queued_ns,
    CASE WHEN (flags & 512) > 0 THEN submit_ns END AS submit_ns,
    CASE WHEN (flags & 1024) > 0 THEN start_ns END AS start_ns,
    CASE WHEN (flags & 2048) > 0 THEN end_ns END AS end_ns,
    TRY_CAST(bytes AS BIGINT) AS bytes,
    zone,
    CASE WHEN zone IS NOT NULL THEN zone_start_ns END AS zone_start_ns,
    core,
    error_ns,
    status,
    (flags & 1) > 0 AS depends,
    (flags & 4) > 0 AS blocking,
    TRY_CAST(nullif(execution, 0) AS BIGINT) AS execution,
    nullif(correlation, 0) AS correlation,
    CASE WHEN kind = 14 THEN (flags // 65536 % 256)::INTEGER END AS depth,
    step,
    pid,
    tid,
    thread
FROM kymo_scan('device.ops') WHERE kind <> 13
