-- threshold: 0.20
-- weight: 0.25
-- sentence: The costliest region is {name}: {won} of self time, {share} of the run, in {count}
--     call{s}.
-- evidence: a call takes {a} at the median, {b} at the 99th percentile
-- advice: make it cheaper, or call it less often
-- tab: flame
-- query: FROM trace.regions ORDER BY self_ns DESC
--
-- The region with the most self time, without Python's import machinery and garbage collections:
-- those have verdicts of their own. verdict.c makes the same one without SQL from the totals.
-- Several threads may spend more time in it than the run lasted: that is all of the run.
SELECT
    sum(self_ns) AS self,
    greatest({run_ns}, sum(self_ns)),
    name,
    sum(count),
    arg_max(p50_ns, count),
    arg_max(p99_ns, count)
FROM {include regions}
WHERE NOT coalesce(contains(file, '{FACTS_IMPORT_FILE}'), false)
    AND NOT coalesce(starts_with(name, '{FACTS_GC}'), false)
GROUP BY name
ORDER BY self DESC
LIMIT 1
