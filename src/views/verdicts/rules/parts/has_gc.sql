-- The number of regions of garbage collections.
SELECT count(*)
FROM trace.regions
WHERE starts_with(name, '{FACTS_GC}')
