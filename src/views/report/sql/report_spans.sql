-- The time ranges that an HTML report shows in full detail if not all zones fit: the slowest 20
-- steps, the first 5 and about 40 evenly chosen ones. Without steps, evenly chosen hundredths of
-- the run.
WITH s AS (
    SELECT
        start_ns,
        start_ns + duration_ns AS end_ns,
        row_number() OVER (ORDER BY duration_ns DESC) AS slow,
        row_number() OVER (ORDER BY start_ns) AS n,
        count(*) OVER () AS c
    FROM {include steps}
), r AS (
    SELECT max(duration_ns) AS d
    FROM kymo.runs
)
SELECT start_ns, end_ns
FROM s
WHERE slow <= 20 OR n <= 5 OR n % greatest(c // 40, 1) = 0
UNION ALL
SELECT d * i // 10, d * i // 10 + d // 100
FROM r, range(10) t(i)
WHERE NOT EXISTS (FROM s)
ORDER BY 1
LIMIT 80
