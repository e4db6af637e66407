-- Forward and backward of every torch module, and optimizer steps.
--
-- step           BIGINT   finished optimizer steps, from 0; in inference root forwards;
--         kymo.step() overrides
-- seq            BIGINT   order within the step, as rows were written: at their end
-- module         VARCHAR  qualified name, as layers.0.attn; for a step the optimizer's class;
--         backward: the call
-- stage          VARCHAR  forward, backward or step
-- allocated      DOUBLE   MB (2^20 bytes) allocated on the device; NULL without one
-- max_allocated  DOUBLE   its peak, in MB
-- cached         DOUBLE   MB held by the allocator
-- duration       DOUBLE   seconds, by the host's clock
-- ts_ns          BIGINT   when, in ns since the recording began
-- rank           INTEGER  rank of the process; NULL outside of a distributed run
-- pid            INTEGER  the process
-- tid            INTEGER  the thread's number in the kernel
-- device         VARCHAR  as cuda:0; NULL for the CPU
-- self           DOUBLE   seconds without those of modules inside of it
-- model          VARCHAR  the outermost module: its class, with #2 for a second one
-- depth          INTEGER  how many modules it is inside of
-- recomputed     BOOLEAN  a forward that a checkpoint repeats in backward
-- raised         BOOLEAN  it ended with an exception
-- device_ns      BIGINT   its time on the device, from the first of what it queued to the last;
--         NULL where that is not known
SELECT
    step,
    seq,
    module,
    CASE stage WHEN 0 THEN 'forward' WHEN 1 THEN 'backward' WHEN 2 THEN 'step' END AS stage,
    CASE WHEN device >= 0 THEN allocated_bytes / 1048576.0 END AS allocated,
    CASE WHEN device >= 0 THEN peak_bytes / 1048576.0 END AS max_allocated,
    CASE WHEN device >= 0 THEN reserved_bytes / 1048576.0 END AS cached,
    duration_ns / 1e9 AS duration,
    ts_ns,
    rank,
    pid,
    tid,
    CASE WHEN device >= 0 THEN 'cuda:' || device END AS device,
    greatest(duration_ns - child_ns, 0) / 1e9 AS self,
    model,
    depth,
    flags % 2 = 1 AS recomputed,
    flags // 2 % 2 = 1 AS raised,
    device_ns
FROM kymo_scan('python.torch_trace') LEFT JOIN (SELECT pid AS op_pid, thread_id AS op_thread,
        queued_ns AS op_ns, name AS op_name, max(end_ns - start_ns) AS device_ns FROM
        kymo_scan('device.ops') WHERE (kind = 12 OR kind = 14) AND (flags & 3072) = 3072 GROUP BY
        ALL) ON op_pid = pid AND op_thread = thread_id AND op_ns = ts_ns AND op_name = module
