-- Executions of models on devices.
--
-- model         VARCHAR  the model, program or outermost module
-- device        VARCHAR  the device
-- core          INTEGER  the core, or the queue's number in order of creation
-- executions    BIGINT   how often it ran; of a program of which no more is known, its kernels
-- p50_ns        BIGINT   the median latency, from its start to its end, of all executions
-- p99_ns        BIGINT   the 99th percentile of all: of fewer than a hundred it is the longest,
--         often the first
-- total_ns      BIGINT   the time in all
-- min_ns        BIGINT   the shortest
-- max_ns        BIGINT   the longest
-- first_ns      BIGINT   when the first one began
-- first_run_ns  BIGINT   how long the first one took: it may compile and load what the others find
-- warm_p99_ns   BIGINT   the 99th percentile without the first one; NULL where it is the only one
-- pid           INTEGER  the process
SELECT
    model,
    device,
    core,
    executions,
    p50_ns,
    p99_ns,
    total_ns,
    min_ns,
    max_ns,
    first_ns,
    first_run_ns,
    warm_p99_ns,
    pid
FROM (SELECT model, device, core, count(*) AS executions, quantile_disc(ns, 0.5)::BIGINT AS p50_ns,
        quantile_disc(ns, 0.99)::BIGINT AS p99_ns, sum(ns)::BIGINT AS total_ns, min(ns)::BIGINT AS
        min_ns, max(ns)::BIGINT AS max_ns, min(start_ns) AS first_ns, (min(ns) FILTER (n =
        1))::BIGINT AS first_run_ns, (quantile_disc(ns, 0.99) FILTER (n > 1))::BIGINT AS
        warm_p99_ns, pid FROM (SELECT *, row_number() OVER (PARTITION BY model, device, core, pid
        ORDER BY start_ns) AS n FROM (WITH told AS (SELECT model, device, core, start_ns, end_ns,
        pid, kind, execution FROM kymo_scan('device.ops') WHERE model IS NOT NULL AND kind IN (0,
        12) AND (flags & 3072) = 3072), named AS (SELECT DISTINCT pid, model FROM told WHERE kind =
        12) SELECT model, device, core, start_ns, end_ns - start_ns AS ns, pid FROM told WHERE kind
        = 12 UNION ALL SELECT t.model, t.device, t.core, t.start_ns, t.end_ns - t.start_ns, t.pid
        FROM told t ANTI JOIN named n ON n.pid = t.pid AND n.model = t.model WHERE t.kind = 0 UNION
        ALL SELECT r.model, CASE WHEN r.device >= 0 THEN 'cuda:' || r.device ELSE 'cpu' END, CASE
        WHEN r.device >= 0 THEN r.device ELSE 0 END, r.ts_ns, r.duration_ns, r.pid FROM
        kymo_scan('python.torch_trace') r ANTI JOIN named n ON n.pid = r.pid AND n.model = r.model
        WHERE r.stage = 0 AND r.depth = 0 AND r.flags % 2 = 0 AND r.model IS NOT NULL)) GROUP BY
        model, device, core, pid ORDER BY total_ns DESC, model, core)
