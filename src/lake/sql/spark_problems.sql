-- kymo.problems in Spark; see lake_problems.sql.
SELECT text
FROM kymo.problems_rows
UNION ALL
SELECT
    concat(
        'rank ', rank, ' has ', count(*), ' processes of attempt ', coalesce(attempt, 0), ' (',
        concat_ws(', ', sort_array(collect_set(concat(host, ' pid ', pid)))),
        '): several jobs have this id'
    ) AS text
FROM dist.ranks_rows
WHERE pid IS NOT NULL
GROUP BY rank, attempt
HAVING count(*) > 1
