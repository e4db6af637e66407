-- kymo.problems of a job of a lake. {files}: those of its recordings; {problems}: those of the
-- lake.
SELECT text
FROM (
    {files}
)
UNION ALL
SELECT
    'rank ' || rank || ' has ' || count(*) || ' processes of attempt ' || coalesce(attempt, 0)
    || ' ('
    || string_agg(DISTINCT host || ' pid ' || pid, ', ' ORDER BY host || ' pid ' || pid)
    || '): several jobs have this id'
FROM ({ranks})
WHERE pid IS NOT NULL
GROUP BY rank, attempt
HAVING count(*) > 1
{problems}
