-- The functions of the program's own code by the time of their periodic samples, running or
-- waiting, and the number and the time of all samples in such functions.
SELECT
    {include place_label},
    count(*) AS samples,
    sum(weight) AS time,
    sum(weight) FILTER (state = 'R'),
    sum(count(*)) OVER (),
    sum(sum(weight)) OVER ()
FROM {include weighted_samples}
WHERE cause = 'period' AND place IS NOT NULL
GROUP BY {include place_function}
ORDER BY time DESC, 1
LIMIT {FACTS_FUNCTIONS}
