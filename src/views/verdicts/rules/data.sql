-- threshold: 0.10
-- weight: 1.0
-- needs: trace.steps
-- sentence: Data loading holds up training: it takes {share} of step time ({won} of {whole}).
-- evidence: median wait {a} per step, mean {b} in the slowest 2 %
-- advice: use more loader workers, or prefetch; at most {share} to gain
-- zones_if: has_data
-- tab: timeline
-- query: SELECT step, data_ns, duration_ns FROM trace.steps ORDER BY data_ns DESC
--
-- The time of the data phase of all steps. The evidence compares the median step with the slowest
-- 2 %: a large difference points at stalls, an equal share at a loader that is too slow throughout.
--
-- The place is the function of the program's own code that loads: called by torch's loader, in the
-- training process or in a worker, or during the phase.
WITH z AS (
    SELECT host, pid, tid, start_ns, duration_ns
    FROM {zones} AS all_zones
    WHERE name IN ('data', 'DataLoader.next')
        AND (SELECT sum(data_ns) > 0.1 * sum(duration_ns) FROM {include steps})
), a AS (
    SELECT
        host,
        pid,
        tid,
        ts_ns,
        place,
        weight,
        doing,
        list_position(stack, place) AS depth,
        list_position(
            list_transform(stack, lambda x: contains(x, '/torch/utils/data/')), true
        ) AS loader
    FROM {include weighted_samples}
    WHERE place IS NOT NULL AND (SELECT count(*) FROM z) > 0
), i AS (
    SELECT a.place, a.weight
    FROM a
    ASOF JOIN z ON a.host = z.host AND a.pid = z.pid AND a.tid = z.tid AND a.ts_ns >= z.start_ns
    WHERE a.ts_ns < z.start_ns + z.duration_ns AND loader IS NULL
    UNION ALL
    SELECT place, weight
    FROM a
    WHERE depth < loader
), p AS (
    FROM {include top_place from=i}
)
SELECT
    sum(data_ns),
    sum(duration_ns),
    '',
    count(*),
    median(data_ns),
    avg(data_ns) FILTER (duration_ns >= slow),
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM (
    SELECT *, quantile_cont(duration_ns, 0.98) OVER () AS slow
    FROM {include steps}
)
