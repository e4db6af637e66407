-- threshold: 0.10
-- weight: 0.8
-- sentence: Threads wait for locks: {won} in total, {share} of the run, mostly in {name}.
-- evidence: {count} wait{s}, the longest {a}
-- advice: hold the lock for a shorter time, or give each thread its own data
-- tab: timeline
-- query: SELECT name, count, self_ns, max_ns FROM trace.regions WHERE name ILIKE '%lock%'
--
-- Self time of regions whose name contains one of the usual words for a lock, as a whole word.
SELECT
    sum(self_ns) AS self,
    {run_ns},
    arg_max(name, self_ns),
    sum(count),
    max(max_ns),
    0
FROM trace.regions
WHERE regexp_matches(
    name,
    '(^|[^a-z])(lock|rlock|mutex|acquire|semaphore|barrier|condition)([^a-z]|$)',
    'i'
)
