-- Whether zones cover less than a tenth of the run.
SELECT (coalesce(sum(self_ns), 0) < 0.1 * {run_ns})::INT
FROM trace.regions
WHERE NOT coalesce(starts_with(name, '{FACTS_GC}'), false)
