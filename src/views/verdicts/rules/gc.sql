-- threshold: 0.05
-- weight: 0.8
-- sentence: Garbage collection takes {share} of the run ({won}).
-- evidence: {count} collection{s}, the longest {a}
-- advice: call gc.freeze() after start-up, raise gc.set_threshold(), create fewer objects in the
--     loop
-- tab: timeline
-- query: SELECT name, count, total_ns, max_ns FROM trace.regions WHERE name LIKE 'gc %'
--
-- Collections that the interpreter starts ("gc (generation 2)") and regions that are named after a
-- garbage collection or that end in gc_collect.
SELECT
    sum(self_ns),
    {run_ns},
    arg_max(name, self_ns),
    sum(count),
    max(max_ns),
    0
FROM trace.regions
WHERE regexp_matches(name, '^(gc|garbage collection)($|[^a-z])|[.:]gc_?collect$', 'i')
