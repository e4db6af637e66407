-- Executions of models on devices.
--
-- model         VARCHAR  model, program or outermost module
-- device        VARCHAR  device
-- core          INTEGER  core, or number of the queue in order of creation
-- executions    BIGINT   number of executions; for a program without them, of kernels
-- p50_ns        BIGINT   median latency, from start to end, of all executions
-- p99_ns        BIGINT   99th percentile of the latency; with fewer than 100 executions the
--                        longest, often the first
-- total_ns      BIGINT   total latency
-- min_ns        BIGINT   shortest latency
-- max_ns        BIGINT   longest latency
-- first_ns      BIGINT   start of the first execution
-- first_run_ns  BIGINT   latency of the first execution, which may compile and load the model
-- warm_p99_ns   BIGINT   99th percentile without the first execution; NULL if there is only one
-- pid           INTEGER  process ID
-- rank          INTEGER  rank of the process; NULL outside a distributed run
-- host          VARCHAR  host name
--
-- Executions as recorded; for a model without them, its kernels or the outermost modules of torch.
WITH
recorded AS (
    SELECT model, device, core, start_ns, end_ns, process_id, pid, rank, host, kind
    FROM kymo_scan('device.ops')
    WHERE model IS NOT NULL
        AND kind IN ({KYMO_DEVICE_KERNEL}, {KYMO_DEVICE_EXECUTION})
        AND (flags & {DEVICE_BOTH_ENDS}) = {DEVICE_BOTH_ENDS}
),
named AS (
    SELECT DISTINCT process_id, model
    FROM recorded
    WHERE kind = {KYMO_DEVICE_EXECUTION}
),
executions AS (
    SELECT model, device, core, start_ns, end_ns - start_ns AS ns, process_id, pid, rank, host
    FROM recorded
    WHERE kind = {KYMO_DEVICE_EXECUTION}
    UNION ALL
    SELECT
        r.model,
        r.device,
        r.core,
        r.start_ns,
        r.end_ns - r.start_ns,
        r.process_id,
        r.pid,
        r.rank,
        r.host
    FROM recorded r
    ANTI JOIN named n ON n.process_id = r.process_id AND n.model = r.model
    WHERE r.kind = {KYMO_DEVICE_KERNEL}
    UNION ALL
    SELECT
        t.module, -- differs from its model if that is never called itself
        CASE WHEN t.device >= 0 THEN 'cuda:' || t.device ELSE 'cpu' END,
        CASE WHEN t.device >= 0 THEN t.device ELSE 0 END,
        t.ts_ns,
        t.duration_ns,
        t.process_id,
        t.pid,
        t.rank,
        t.host
    FROM kymo_scan('python.torch_trace') t
    ANTI JOIN named n ON n.process_id = t.process_id AND n.model = t.module
    WHERE t.stage = {SCHEMA_TORCH_FORWARD}
        AND t.depth = 0
        AND (t.flags & {SCHEMA_TORCH_RECOMPUTED}) = 0
        AND t.model IS NOT NULL
),
numbered AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY model, device, core, process_id ORDER BY start_ns) AS n
    FROM executions
)
SELECT
    model,
    device,
    core,
    count(*) AS executions,
    quantile_disc(ns, 0.5)::BIGINT AS p50_ns,
    quantile_disc(ns, 0.99)::BIGINT AS p99_ns,
    sum(ns)::BIGINT AS total_ns,
    min(ns)::BIGINT AS min_ns,
    max(ns)::BIGINT AS max_ns,
    min(start_ns) AS first_ns,
    (min(ns) FILTER (n = 1))::BIGINT AS first_run_ns,
    (quantile_disc(ns, 0.99) FILTER (n > 1))::BIGINT AS warm_p99_ns,
    pid,
    rank,
    host
FROM numbered
GROUP BY model, device, core, process_id, pid, rank, host
ORDER BY total_ns DESC, model, core
