-- threshold: 0.20
-- weight: 0.25
-- weight_with_steps: 0.12
-- sentence: The costliest region is {name}: {won} of self time, {share} of the run, in {count}
--     call{s}.
-- evidence: a call takes {a} at the median, {b} at the 99th percentile
-- advice: make it cheaper, or call it less often
-- tab: flame
-- query: FROM trace.regions ORDER BY self_ns DESC
--
-- The region with the most self time, without Python's import machinery and garbage collections:
-- those have verdicts of their own. Steps of torch.profiler contain everything. Of an imported
-- trace the critical path is judged instead. verdict.c makes the same one without SQL from the
-- totals.
-- Several threads may spend more time in it than the run lasted: that is all of the run.
-- The place is the function that ran in its zones, by samples; else the line of the region itself.
-- A region's wait in collectives is the time of the late rank, and does not count.
WITH w AS (
    SELECT zone AS name, sum(wait_ns) AS wait_ns
    FROM dist.collectives
    GROUP BY zone
), r AS (
    SELECT
        sum(self_ns) - coalesce(any_value(wait_ns), 0) AS self,
        name,
        sum(count) AS n,
        arg_max(p50_ns, count) AS p50,
        arg_max(p99_ns, count) AS p99,
        any_value(bare_name) AS bare_name,
        any_value(source) AS source,
        any_value(name || ' (' || file || ':' || line || ')')
            FILTER (contains(file, '/') AND line > 0) AS place
    FROM {include regions}
    LEFT JOIN w USING (name)
    WHERE NOT coalesce(contains(file, '{FACTS_IMPORT_FILE}'), false)
        AND NOT coalesce(starts_with(name, '{FACTS_GC}'), false)
        AND NOT coalesce(starts_with(name, 'ProfilerStep#'), false)
        AND (
            (SELECT count(*) FROM kymo.imports) = 0
            OR (SELECT count(*) FROM trace.critical_sums) = 0
        )
    GROUP BY name
    ORDER BY self DESC
    LIMIT 1
), p AS (
    FROM {include zone_place of=r}
)
SELECT
    self,
    greatest({run_ns}, self),
    name,
    n,
    p50,
    p99,
    coalesce((SELECT place FROM p), place) AS place,
    (SELECT share FROM p) AS place_share
FROM r
