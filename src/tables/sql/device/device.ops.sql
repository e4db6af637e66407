-- Operations of devices, in host time.
--
-- device         VARCHAR  device
-- queue          VARCHAR  queue or stream
-- model          VARCHAR  model or program of the operation
-- kind           VARCHAR  kernel, read, write, copy, fill, map, unmap, migrate, marker, barrier,
--                         native or other; execution: a whole run of a model; module: a part of one
-- name           VARCHAR  operation name
-- queued_ns      BIGINT   time at which the host queued it; NULL if not known
-- submit_ns      BIGINT   time at which it was submitted to the device; NULL if not known
-- start_ns       BIGINT   start on the device; NULL if not known
-- end_ns         BIGINT   end on the device; NULL if not known
-- bytes          BIGINT   bytes moved
-- zone           VARCHAR  host zone that queued it; NULL if none was open
-- zone_start_ns  BIGINT   start of that zone; with tid it identifies the row of trace.zones
-- core           INTEGER  core, or number of the queue in order of creation
-- error_ns       BIGINT   uncertainty of the four times against the host clock
-- status         INTEGER  0, or the error code of the runtime
-- depends        BOOLEAN  true if it had to wait for other operations
-- blocking       BOOLEAN  true if the call that queued it waited for its end
-- execution      BIGINT   number of the model execution that contains it; NULL if none
-- correlation    UBIGINT  correlation number of the runtime; NULL if none
-- depth          INTEGER  nesting depth of a module; 0 is outermost; NULL for other kinds
-- step           BIGINT   current step; 0 before the first
-- pid            INTEGER  process ID
-- tid            INTEGER  kernel thread ID
-- thread         VARCHAR  thread name
-- rank           INTEGER  rank of the process; NULL outside a distributed run
-- host           VARCHAR  host name
-- call           VARCHAR  function of the runtime that queued it; NULL if not known
-- call_ns        BIGINT   duration of that call; NULL if not known
-- module         VARCHAR  torch module of a backward operation of an imported trace; see
--                         device.launches for the module of any operation
-- communication  BOOLEAN  true if its arguments, or the user, say that it communicates
SELECT
    device,
    queue,
    model,
    [{DEVICE_KIND_WORDS}][kind + 1] AS kind,
    name,
    CASE WHEN (flags & {SCHEMA_DEVICE_QUEUED}) > 0 THEN queued_ns END AS queued_ns,
    CASE WHEN (flags & {SCHEMA_DEVICE_SUBMIT}) > 0 THEN submit_ns END AS submit_ns,
    CASE WHEN (flags & {SCHEMA_DEVICE_START}) > 0 THEN start_ns END AS start_ns,
    CASE WHEN (flags & {SCHEMA_DEVICE_END}) > 0 THEN end_ns END AS end_ns,
    TRY_CAST(bytes AS BIGINT) AS bytes,
    zone,
    CASE WHEN zone IS NOT NULL THEN zone_start_ns END AS zone_start_ns,
    core,
    error_ns,
    status,
    (flags & {KYMO_DEVICE_DEPENDS}) > 0 AS depends,
    (flags & {KYMO_DEVICE_BLOCKING}) > 0 AS blocking,
    TRY_CAST(nullif(execution, 0) AS BIGINT) AS execution,
    nullif(correlation, 0) AS correlation,
    CASE WHEN kind = {KYMO_DEVICE_MODULE}
        THEN ((flags & {DEVICE_DEPTH_MASK}) // {DEVICE_DEPTH_ONE})::INTEGER
    END AS depth,
    step,
    pid,
    tid,
    thread,
    rank,
    host,
    call,
    TRY_CAST(nullif(call_ns, 0) AS BIGINT) AS call_ns,
    module,
    (flags & {SCHEMA_DEVICE_COMM}) > 0 AS communication
FROM kymo_scan('device.ops')
WHERE kind <> {KYMO_DEVICE_WAIT}
