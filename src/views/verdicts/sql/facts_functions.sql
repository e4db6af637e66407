-- The functions of the program's own code by periodic samples, running or waiting, and the number
-- of all samples in such functions.
SELECT
    {include place_label},
    count(*) AS samples,
    count(*) FILTER (state = 'R'),
    sum(count(*)) OVER ()
FROM python.samples
WHERE cause = 'period' AND place IS NOT NULL
GROUP BY {include place_function}
ORDER BY samples DESC, 1
LIMIT {FACTS_FUNCTIONS}
