-- threshold: 0.30
-- weight: 0.25
-- least_s: 1
-- sentence: The costliest function is {name}: {share} of all samples.
-- evidence: {count} samples
-- advice: make it cheaper, or call it less often
-- tab: flame?of=samples
-- query: SELECT stack[1], count(*) FROM python.samples GROUP BY 1 ORDER BY 2 DESC
--
-- The innermost function of stacks sampled on a CPU (state R), without its line number, from 50
-- samples.
SELECT
    {run_ns} * n / total,
    {run_ns},
    f,
    n,
    0,
    0
FROM (
    SELECT
        regexp_replace(stack[1], ':[0-9]+\)$', ')') AS f,
        count(*) AS n,
        sum(count(*)) OVER () AS total
    FROM python.samples
    WHERE state = 'R' AND len(stack) > 0
    GROUP BY 1
)
WHERE total >= 50
ORDER BY n DESC
LIMIT 1
