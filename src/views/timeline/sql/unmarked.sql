-- Whether the program marked nothing itself, while its stacks were sampled: garbage collections are
-- recorded as zones by default.
SELECT
    (EXISTS (SELECT 1 FROM python.samples) OR EXISTS (SELECT 1 FROM native.samples))
    AND NOT EXISTS (
        SELECT 1
        FROM trace.zones
        WHERE NOT coalesce(starts_with(name, '{FACTS_GC}'), false)
    )
