-- Forward and backward of every torch module, and optimizer steps.
--
-- step           BIGINT   number of finished optimizer steps, from 0; without training, of batches
--                         of a DataLoader or else of root forwards, which are no rows of
--                         trace.steps; kymo.step() overrides all
-- seq            BIGINT   order of the rows within the step; a row is written when it ends
-- module         VARCHAR  qualified name, for example layers.0.attn; for a step, the class of the
--                         optimizer; for backward as a whole, the call
-- stage          VARCHAR  forward, backward or step
-- allocated      DOUBLE   memory allocated on the device, in MB (2^20 bytes); NULL without a device
-- max_allocated  DOUBLE   peak of allocated, in MB; NULL without a device
-- cached         DOUBLE   memory held by the allocator, in MB; NULL without a device
-- duration       DOUBLE   duration in seconds, by the host clock
-- ts_ns          BIGINT   start, in ns since the recording began
-- rank           INTEGER  rank of the process; NULL outside a distributed run
-- pid            INTEGER  process ID
-- tid            INTEGER  kernel thread ID
-- device         VARCHAR  device, for example cuda:0; NULL for the CPU
-- self           DOUBLE   duration without nested modules, in seconds
-- model          VARCHAR  class of the outermost module, or of its owner if that is never called
--                         itself, with #2 for a second instance
-- depth          INTEGER  nesting depth of the module; 0 is outermost
-- recomputed     BOOLEAN  true for a forward that a checkpoint repeats in backward
-- raised         BOOLEAN  true if it ended with an exception
-- device_ns      BIGINT   time on the device, from the first of its operations to the last; NULL if
--                         not known
-- host           VARCHAR  host name
--
-- The thread of the row launched the operations of a module, at the time when the module began.
WITH device_times AS (
    SELECT
        process_id,
        thread_id,
        queued_ns,
        name,
        max(end_ns - start_ns) AS device_ns
    FROM kymo_scan('device.ops')
    WHERE kind IN ({KYMO_DEVICE_EXECUTION}, {KYMO_DEVICE_MODULE})
        AND (flags & {DEVICE_BOTH_ENDS}) = {DEVICE_BOTH_ENDS}
    GROUP BY process_id, thread_id, queued_ns, name
)
SELECT
    r.step,
    r.seq,
    r.module,
    CASE r.stage
        WHEN {SCHEMA_TORCH_FORWARD} THEN 'forward'
        WHEN {SCHEMA_TORCH_BACKWARD} THEN 'backward'
        WHEN {SCHEMA_TORCH_STEP} THEN 'step'
    END AS stage,
    CASE WHEN r.device >= 0 THEN r.allocated_bytes / 1048576.0 END AS allocated,
    CASE WHEN r.device >= 0 THEN r.peak_bytes / 1048576.0 END AS max_allocated,
    CASE WHEN r.device >= 0 THEN r.reserved_bytes / 1048576.0 END AS cached,
    r.duration_ns / 1e9 AS duration,
    r.ts_ns,
    r.rank,
    r.pid,
    r.tid,
    CASE WHEN r.device >= 0 THEN 'cuda:' || r.device END AS device,
    greatest(r.duration_ns - r.child_ns, 0) / 1e9 AS self,
    r.model,
    r.depth,
    (r.flags & {SCHEMA_TORCH_RECOMPUTED}) > 0 AS recomputed,
    (r.flags & {SCHEMA_TORCH_RAISED}) > 0 AS raised,
    d.device_ns,
    r.host
FROM kymo_scan('python.torch_trace') r
LEFT JOIN device_times d
    ON d.process_id = r.process_id
    AND d.thread_id = r.thread_id
    AND d.queued_ns = r.ts_ns
    AND d.name = r.module
