-- threshold: 0.10
-- weight: 0.3
-- needs: python.torch_trace
-- sentence: Steps are small: {count} steps of {a} each take {won}, {share} of the run without
--     imports; a torch module takes {b} a call, most of which is the cost of calling it.
-- evidence: medians of steps and of forward calls; a call of a module costs about 10 us by itself
-- advice: use larger batches, fuse small modules, or torch.compile
-- tab: timeline
-- query: SELECT step, duration_ns FROM trace.steps ORDER BY start_ns
--
-- A training loop of at least 500 steps whose usual step takes less than 2 ms, and whose modules
-- take less than 60 us a call. The place is the function with most of the samples in steps.
WITH s AS (
    FROM {include numbered_steps}
), v AS (
    SELECT place, weight
    FROM {include step_samples steps=s}
), p AS (
    FROM {include top_place from=v}
), i AS (
    SELECT coalesce(sum(time_ns), 0) AS ns
    FROM {include weighted_samples}
    SEMI JOIN s USING (host, pid)
    WHERE tid = pid AND {include in_import}
), m AS (
    SELECT median(self) * 1e9 AS each
    FROM python.torch_trace
    WHERE stage = 'forward' AND module <> ''
)
SELECT
    sum(duration_ns),
    greatest({run_ns} - (SELECT ns FROM i), sum(duration_ns)),
    '',
    count(*),
    any_value(usual),
    (SELECT each FROM m),
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM s
HAVING count(*) >= 500 AND any_value(usual) < 2e6 AND (SELECT each FROM m) < 6e4
