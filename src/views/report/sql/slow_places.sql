-- The function of the program's own code that took most of the time of each slow step above what it
-- usually takes, by samples of the main thread: number of the step, function (file:line), and time.
-- {which} is WHEN … THEN number of the step, for a sample of start_ns and no duration_ns.
WITH a AS (
    SELECT pid, place, weight, ts_ns AS start_ns, 0 AS duration_ns
    FROM {include weighted_samples}
    WHERE tid = pid AND time_ns > 0 AND place IS NOT NULL
), i AS (
    SELECT *, CASE {which} END AS i, {include place_function} AS function
    FROM a
), u AS (
    SELECT function, sum(weight) / {steps} AS usual
    FROM i
    WHERE i IS NULL
    GROUP BY 1
)
SELECT i, arg_max(label, ns - usual), arg_max(ns, ns - usual)
FROM (
    SELECT
        i,
        {include place_label} AS label,
        sum(weight) AS ns,
        coalesce(any_value(usual), 0) AS usual
    FROM i
    LEFT JOIN u USING (function)
    WHERE i IS NOT NULL
    GROUP BY i, function
)
GROUP BY i
