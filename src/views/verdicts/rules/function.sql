-- threshold: 0.30
-- weight: 0.25
-- weight_with_steps: 0.15
-- least_s: 0.1
-- sentence: The costliest function is {name}: {share} of the run{which}.
-- evidence: {count} samples
-- advice: make it cheaper, or call it less often
-- tab: flame?of=samples
-- query: FROM trace.places ORDER BY running_ns DESC
--
-- The innermost function of the program's own code in stacks sampled on a CPU (state R), or the
-- innermost function if there is no such code, with its most frequent line. A function with 30 % of
-- the samples needs 50 of them; one with more needs fewer: three standard deviations above 30 %.
-- Its time is that of its samples; in recordings without, its share of them. Native samples are of
-- CPU time: the time in which the process was ready but had no core is shared among them, as it is
-- part of the samples of Python. Imports have a verdict of their own. Where every call is recorded,
-- the totals of regions are exact. What the function does is named if half of its samples are of
-- one kind, by Python's stacks or by native ones of the same threads; those that have no place
-- count if the function has nearly all of the time, except those of imports and of the
-- interpreter's end. What multiprocessing does
-- outside of own code has a verdict of its own (pickle). A finding with its kind of work weighs
-- more: the kind tells what to change.
WITH u AS (
    SELECT host, pid, (cpu_ns + run_delay_ns) / cpu_ns AS stretch
    FROM {include process_use}
    WHERE cpu_ns > 0
), s AS (
    SELECT host, pid, tid, stack, coalesce(place, stack[1]) AS place, weight, time_ns
    FROM {include weighted_samples}
    WHERE state = 'R' AND len(stack) > 0 AND NOT {include in_import}
        AND NOT (place IS NULL AND contains(stack[1], '/multiprocessing/'))
    UNION ALL
    SELECT
        host,
        pid,
        tid,
        stack,
        coalesce(place, stack[1]),
        weight * coalesce(stretch, 1),
        time_ns * coalesce(stretch, 1)
    FROM {include native_threads} AS n
    LEFT JOIN u USING (host, pid)
    WHERE state = 'R' AND len(stack) > 0 AND NOT idle
), f AS (
    SELECT
        {include place_function} AS function,
        {include place_label} AS label,
        mode(place) AS place,
        sum(time_ns) AS ns,
        sum(weight) AS time,
        sum(sum(weight)) OVER () AS whole,
        time / whole AS share,
        count(*) AS n,
        sum(count(*)) OVER () AS total
    FROM s
    GROUP BY {include place_function}
    ORDER BY time DESC
    LIMIT 1
), i AS (
    SELECT *
    FROM s
    WHERE {include place_function} = (SELECT function FROM f)
), n AS (
    SELECT stack, place, weight_ns AS weight
    FROM native.samples
    SEMI JOIN i USING (host, pid, tid)
    WHERE activity = 'running'
        AND NOT {include in_import}
        AND NOT regexp_matches(
            array_to_string(stack, ';'),
            '(^|;)(PyImport_ImportModuleLevel|Py_Finalize)'
        )
        AND coalesce(
            {include place_function} = (SELECT function FROM f),
            (SELECT share FROM f) >= 0.8
        )
), k AS (
    SELECT words, advice
    FROM (
        FROM {include work_kinds from=i}
        UNION ALL
        FROM {include work_kinds from=n}
    )
    WHERE share >= 0.5
    ORDER BY share DESC
    LIMIT 1
)
SELECT
    CASE WHEN ns > 0 THEN ns ELSE {run_ns} * share END,
    greatest({run_ns}, ns),
    label,
    n,
    0,
    0,
    coalesce((SELECT ', mostly for ' || words FROM k), ''),
    place,
    share AS place_share,
    (SELECT advice FROM k) AS advice,
    CASE WHEN EXISTS (FROM k) THEN 0.35 END AS weight
FROM f
WHERE whole > 0
    AND (total >= 50 OR share - 0.3 > 3 * sqrt(0.21 / total))
    AND (
        SELECT coalesce(sum(self_ns), 0)
        FROM trace.regions
        WHERE source = 'python' AND NOT coalesce(starts_with(name, '{FACTS_GC}'), false)
    ) < 0.5 * {run_ns}
