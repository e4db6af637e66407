-- Operators of torch in the recorded steps, with the shapes of their inputs: kymo run --torch-ops.
--
-- start_ns     BIGINT   start, in ns since the recording began
-- duration_ns  BIGINT   duration, by the host clock
-- name         VARCHAR  operator, for example aten::addmm; or a node of backward, or a region of
--                       torch.compile
-- module       VARCHAR  module whose forward or backward called it; NULL if none
-- stage        VARCHAR  forward, backward, step (optimizer) or other
-- shapes       VARCHAR  sizes of its tensors, for example [64,128] [128,256]; a list is in
--                       parentheses; NULL if it has none
-- dtypes       VARCHAR  their types, for example float32 float32
-- flops        BIGINT   floating-point operations, as torch.utils.flop_counter counts them; NULL
--                       if it has no formula or is inside an operator that was counted
-- flops_per_s  DOUBLE   flops by duration
-- depth        INTEGER  number of operators around it; 0 is outermost
-- sequence     BIGINT   number that autograd gave it: that of a node of backward is the one of its
--                       forward; NULL if none
-- recomputed   BOOLEAN  true in a forward that a checkpoint repeats in backward
-- step         BIGINT   step, as in python.torch_trace
-- pid          INTEGER  process ID
-- tid          INTEGER  kernel thread ID
-- thread       VARCHAR  thread name
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- host         VARCHAR  host name
-- model        VARCHAR  class of the outermost module, as in python.torch_trace; NULL if none
SELECT
    start_ns,
    duration_ns,
    name,
    module,
    CASE kind & {SCHEMA_TORCH_OP_STAGE}
        WHEN {SCHEMA_TORCH_FORWARD} THEN 'forward'
        WHEN {SCHEMA_TORCH_BACKWARD} THEN 'backward'
        WHEN {SCHEMA_TORCH_STEP} THEN 'step'
        ELSE 'other'
    END AS stage,
    shapes,
    dtypes,
    CASE WHEN (kind & {SCHEMA_TORCH_OP_COUNTED}) > 0 THEN TRY_CAST(flops AS BIGINT) END AS flops,
    CASE
        WHEN (kind & {SCHEMA_TORCH_OP_COUNTED}) > 0 AND duration_ns > 0
            THEN flops * 1e9 / duration_ns
    END AS flops_per_s,
    depth,
    CASE WHEN sequence >= 0 THEN sequence END AS sequence,
    (kind & {SCHEMA_TORCH_OP_RECOMPUTED}) > 0 AS recomputed,
    step,
    pid,
    tid,
    thread,
    rank,
    host,
    model
FROM kymo_scan('torch.ops')
