-- FLOPs and FLOP/s of modules in the steps whose operators were recorded, with the modules inside
-- them.
--
-- module       VARCHAR  module, as in python.torch_trace; NULL for all operators of the process
-- stage        VARCHAR  forward, backward, step or other; NULL for all
-- steps        BIGINT   number of recorded steps with such operators
-- operators    BIGINT   number of outermost operators
-- flops        BIGINT   floating-point operations, as torch.utils.flop_counter counts them
-- self_flops   BIGINT   of these, in no module inside this one
-- duration_ns  BIGINT   time of the module in these steps; for the process, of the steps; NULL if
--                       not known
-- flops_per_s  DOUBLE   flops by duration_ns
-- mfu          DOUBLE   flops_per_s as a share of the peak, from 0 to 1; NULL without a peak
-- peak         DOUBLE   peak for the type that most flops have, in FLOP/s
-- peak_origin  VARCHAR  given, known or measured; NULL without a peak
-- pid          INTEGER  process ID
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- host         VARCHAR  host name
-- model        VARCHAR  class of the outermost module; NULL if none
--
-- The time of a module is that of its calls, on the host: on a GPU its kernels may end later.
WITH
ops AS (
    SELECT
        o.process_id,
        o.pid,
        o.rank,
        o.host,
        o.step,
        o.module,
        o.model,
        CASE o.kind & {SCHEMA_TORCH_OP_STAGE}
            WHEN {SCHEMA_TORCH_FORWARD} THEN 'forward'
            WHEN {SCHEMA_TORCH_BACKWARD} THEN 'backward'
            WHEN {SCHEMA_TORCH_STEP} THEN 'step'
            ELSE 'other'
        END AS stage,
        string_split(o.dtypes, ' ')[-1] AS dtype,
        sum(CASE WHEN (o.kind & {SCHEMA_TORCH_OP_COUNTED}) > 0 THEN o.flops ELSE 0 END) AS flops,
        count(*) FILTER (WHERE o.depth = 0) AS operators,
        min(o.start_ns) AS first_ns,
        max(o.start_ns + o.duration_ns) AS last_ns
    FROM kymo_scan('torch.ops') o
    GROUP BY ALL
),
-- A module and those around it: "layers.0.attn" is in "layers.0" and in "layers"; those that were
-- never called have no rows in times.
paths AS (
    SELECT DISTINCT module, string_split(module, '.') AS parts
    FROM ops
    WHERE module IS NOT NULL
),
around AS (
    SELECT module, array_to_string(parts[1:upto], '.') AS outer_module
    FROM (SELECT module, parts, unnest(range(1, len(parts) + 1)) AS upto FROM paths)
),
-- The outermost module has the name of its class; the names of those inside do not begin with it.
members AS (
    SELECT o.process_id, o.model, o.module, a.outer_module
    FROM (SELECT DISTINCT process_id, model, module FROM ops WHERE module IS NOT NULL) o
    JOIN around a ON a.module = o.module
    UNION
    SELECT DISTINCT process_id, model, module, model
    FROM ops
    WHERE module IS NOT NULL AND model IS NOT NULL
),
times AS (
    SELECT
        t.process_id,
        t.module,
        t.model,
        CASE t.stage
            WHEN {SCHEMA_TORCH_FORWARD} THEN 'forward'
            WHEN {SCHEMA_TORCH_BACKWARD} THEN 'backward'
            ELSE 'step'
        END AS stage,
        sum(t.duration_ns) AS duration_ns
    FROM kymo_scan('python.torch_trace') t
    JOIN (SELECT DISTINCT process_id, step FROM ops) s
        ON s.process_id = t.process_id
        AND s.step = t.step
    GROUP BY ALL
),
-- A step lasts as long as its row of trace.steps says; without one, from the first operator to the
-- last.
step_times AS (
    SELECT
        o.process_id,
        o.step,
        coalesce(max(s.duration_ns), max(o.last_ns) - min(o.first_ns)) AS duration_ns
    FROM ops o
    LEFT JOIN kymo_scan('trace.steps') s
        ON s.process_id = o.process_id
        AND s.step = o.step
    GROUP BY o.process_id, o.step
),
sums AS (
    SELECT
        o.process_id,
        o.model,
        m.outer_module AS module,
        o.stage,
        count(DISTINCT o.step) AS steps,
        sum(o.operators) AS operators,
        sum(o.flops) AS flops,
        sum(CASE WHEN o.module = m.outer_module THEN o.flops ELSE 0 END) AS self_flops
    FROM ops o
    JOIN members m
        ON m.process_id = o.process_id
        AND m.model IS NOT DISTINCT FROM o.model
        AND m.module = o.module
    GROUP BY ALL
    UNION ALL
    SELECT
        process_id,
        NULL,
        NULL,
        NULL,
        count(DISTINCT step),
        sum(operators),
        sum(flops),
        sum(CASE WHEN module IS NULL THEN flops ELSE 0 END)
    FROM ops
    GROUP BY process_id
),
whole AS (
    SELECT process_id, sum(duration_ns) AS duration_ns
    FROM step_times
    GROUP BY process_id
),
used AS (
    SELECT
        process_id,
        any_value(pid) AS pid,
        any_value(rank) AS rank,
        any_value(host) AS host
    FROM ops
    GROUP BY process_id
),
types AS (
    SELECT process_id, arg_max(dtype, flops) AS dtype
    FROM (SELECT process_id, dtype, sum(flops) AS flops FROM ops GROUP BY ALL)
    GROUP BY process_id
),
peaks AS (
    SELECT
        p.process_id,
        arg_min(p.flops_per_s, p.ts_ns) AS peak,
        arg_min(p.origin, p.ts_ns) AS origin
    FROM kymo_scan('torch.peaks') p
    JOIN types t
        ON t.process_id = p.process_id
        AND t.dtype = coalesce(nullif(p.dtype, ''), t.dtype)
    GROUP BY p.process_id
)
SELECT
    s.module,
    s.stage,
    s.steps,
    CAST(s.operators AS BIGINT) AS operators,
    TRY_CAST(s.flops AS BIGINT) AS flops,
    TRY_CAST(s.self_flops AS BIGINT) AS self_flops,
    CAST(coalesce(t.duration_ns, CASE WHEN s.module IS NULL THEN w.duration_ns END) AS BIGINT)
        AS duration_ns,
    s.flops * 1e9
        / nullif(coalesce(t.duration_ns, CASE WHEN s.module IS NULL THEN w.duration_ns END), 0)
        AS flops_per_s,
    s.flops * 1e9
        / nullif(coalesce(t.duration_ns, CASE WHEN s.module IS NULL THEN w.duration_ns END), 0)
        / p.peak AS mfu,
    p.peak,
    p.origin AS peak_origin,
    u.pid,
    u.rank,
    u.host,
    s.model
FROM sums s
JOIN used u ON u.process_id = s.process_id
LEFT JOIN times t
    ON t.process_id = s.process_id
    AND t.model IS NOT DISTINCT FROM s.model
    AND t.module = s.module
    AND t.stage = s.stage
LEFT JOIN whole w ON w.process_id = s.process_id
LEFT JOIN peaks p ON p.process_id = s.process_id
WHERE s.module IS NULL OR t.duration_ns IS NOT NULL
