-- threshold: 0.90
-- weight: 0.02
-- least_s: 1
-- sentence: Zones explain little of this run: they cover {a} of {whole}.
-- evidence: {count} zones were recorded
-- advice: mark the outermost loops and calls too
-- zones_if: is_uncovered
-- tab: timeline
-- query: FROM trace.regions ORDER BY self_ns DESC
--
-- Garbage collections alone are not zones that the program has marked. Open zones cover their time
-- too. Without an age (the end of the program was not observed), until the end of the recording.
-- Nor are imports what a zone has to explain: their samples in the main threads are subtracted. The
-- place is the function with most of the samples outside of zones.
WITH s AS (
    SELECT a.place, a.weight
    FROM (
        SELECT pid, tid, ts_ns, place, weight
        FROM {include sampled_threads}
        WHERE place IS NOT NULL AND NOT {include in_import}
    ) AS a
    ASOF LEFT JOIN (
        SELECT pid, tid, start_ns, duration_ns
        FROM {zones} AS all_zones
        WHERE depth = 0 AND NOT coalesce(starts_with(name, '{FACTS_GC}'), false)
    ) AS z ON a.pid = z.pid AND a.tid = z.tid AND a.ts_ns >= z.start_ns
    WHERE NOT coalesce(a.ts_ns < z.start_ns + z.duration_ns, false)
), p AS (
    FROM {include top_place from=s}
), i AS (
    SELECT coalesce(max(ns), 0) AS ns
    FROM (
        SELECT sum(time_ns) AS ns
        FROM {include weighted_samples}
        WHERE tid = pid AND {include in_import}
        GROUP BY host, pid
    )
)
SELECT
    {run_ns} - covered - (SELECT ns FROM i),
    {run_ns},
    '',
    n,
    covered,
    0,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM (
    SELECT
        sum(count) AS n,
        sum(self_ns) + coalesce(
            (
                SELECT sum(coalesce(age_ns, {run_ns} - start_ns))
                FROM trace.open_zones
                WHERE depth = 0
            ),
            0
        ) AS covered
    FROM trace.regions
    WHERE NOT coalesce(starts_with(name, '{FACTS_GC}'), false)
)
WHERE n > 0
