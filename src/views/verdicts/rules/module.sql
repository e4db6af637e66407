-- threshold: 0.25
-- weight: 0.3
-- sentence: The costliest module is {name}: {share} of the model's time ({won} of {whole}).
-- evidence: {count} call{s}, {a} at the median in forward; first calls ({b}) are excluded
-- advice: make it cheaper, fuse it, or reduce its work
-- tab: torch
-- query: SELECT module, stage, count(*), sum(duration) FROM python.torch_trace GROUP BY ALL
--     ORDER BY 4 DESC
--
-- The model is the module without a dot that takes the most time; it contains the others, so its
-- time is the whole. A backward pass as a whole has no forward call and is left out. The first call
-- loads and tunes what later calls use, and its time falls to an arbitrary module: it is subtracted
-- if there are at least 10 calls. A module below 1 % of the run is not judged: in a model that
-- hardly runs, the costliest module is the one that was interrupted.
WITH p AS (
    SELECT
        module,
        stage,
        sum(duration) AS s,
        CASE WHEN count(*) >= 10 THEN arg_min(duration, ts_ns) ELSE 0 END AS first,
        count(*) AS n,
        median(duration) AS each
    FROM python.torch_trace
    WHERE stage <> 'step' AND module <> ''
    GROUP BY module, stage, pid
), m AS (
    SELECT
        module,
        sum(s - first) * 1e9 AS ns,
        sum(first) * 1e9 AS first,
        (sum(n) FILTER (stage = 'forward'))::BIGINT AS calls,
        median(each) FILTER (stage = 'forward') * 1e9 AS each
    FROM p
    GROUP BY 1
    HAVING calls > 0
), root AS (
    SELECT module, ns, first
    FROM m
    WHERE NOT contains(module, '.')
    ORDER BY ns DESC
    LIMIT 1
), o AS (
    SELECT
        m.*,
        ns - coalesce(
            (
                SELECT sum(k.ns)
                FROM m k
                WHERE starts_with(k.module, m.module || '.')
                    AND NOT contains(k.module[len(m.module) + 2:], '.')
            ),
            0
        ) AS self
    FROM m
    WHERE module NOT IN (SELECT module FROM root)
)
SELECT
    self,
    (SELECT ns FROM root),
    coalesce(label, module),
    calls,
    each,
    (SELECT first FROM root)
FROM o
LEFT JOIN {include module_labels} ON name = module
WHERE (SELECT count(*) FROM o) > 2 AND self >= {run_ns} * 0.01
ORDER BY self DESC
LIMIT 1
