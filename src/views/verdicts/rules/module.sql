-- threshold: 0.25
-- weight: 0.3
-- needs: python.torch_trace
-- sentence: The costliest module is {name}: {share} of the model's time ({won} of {whole}).
-- evidence: {count} call{s}, {a} at the median in forward; first calls ({b}) are excluded
-- advice: make it cheaper, fuse it, or reduce its work
-- tab: torch
-- query: SELECT module, stage, count(*), sum(self) FROM python.torch_trace GROUP BY ALL
--     ORDER BY 4 DESC
--
-- Modules are compared by their self time, without the modules that ran inside; the sum of these
-- is the time of the model. Names do not say what is inside what: a list of modules is never
-- called, so transformer.h.0 runs in transformer. The model itself is not judged if it has inner
-- modules. A backward pass as a whole has no forward call and is left out. The first call loads and
-- tunes what later calls use, and its time falls to an arbitrary module: it is subtracted if there
-- are at least 10 calls. A module below 1 % of the run is not judged: in a model that hardly runs,
-- the costliest module is the one that was interrupted.
WITH p AS (
    SELECT
        model,
        module,
        stage,
        sum(self) AS s,
        CASE WHEN count(*) >= 10 THEN arg_min(self, ts_ns) ELSE 0 END AS first,
        count(*) AS n,
        median(duration) AS each
    FROM python.torch_trace
    WHERE stage <> 'step' AND module <> ''
    GROUP BY model, module, stage, host, pid
), m AS (
    SELECT
        model,
        module,
        sum(s - first) * 1e9 AS self,
        sum(first) * 1e9 AS first,
        (sum(n) FILTER (stage = 'forward'))::BIGINT AS calls,
        median(each) FILTER (stage = 'forward') * 1e9 AS each
    FROM p
    GROUP BY 1, 2
    HAVING calls > 0
), o AS (
    SELECT *
    FROM (SELECT *, count(*) OVER (PARTITION BY model) AS modules FROM m)
    WHERE module IS DISTINCT FROM model OR modules = 1
), t AS (
    SELECT module AS bare_name, 'torch' AS source, calls AS n
    FROM o
    ORDER BY self DESC
    LIMIT 1
), w AS (
    FROM {include zone_place of=t}
)
SELECT
    self,
    (SELECT sum(self) FROM m),
    coalesce(label, module),
    calls,
    each,
    (SELECT sum(first) FROM m),
    (SELECT place FROM w) AS place,
    (SELECT share FROM w) AS place_share
FROM o
LEFT JOIN {include module_labels} ON name = module
WHERE (SELECT count(*) FROM o) > 2 AND self >= {run_ns} * 0.01
ORDER BY self DESC
LIMIT 1
