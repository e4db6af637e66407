-- Whether the program marked nothing itself, while its stacks were sampled: garbage collections are
-- recorded as zones by default.
SELECT (
    SELECT count(*)
    FROM trace.regions
    WHERE count > 0 AND NOT starts_with(name, '{FACTS_GC}')
) = 0 AND (SELECT count(*) FROM python.samples) > 0
