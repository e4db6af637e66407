-- The functions of the program's own code by the time of their samples in all processes, and the
-- number and the time of all samples in such functions. Waiting counts half, and at most once for
-- the whole run, in the order: a pool of idle threads waits many times as long, and a parent as
-- long as its children work. Generators and lambdas
-- count with the function that they stand in, and run inside it.
WITH n AS (
    SELECT
        * EXCLUDE (function),
        function AS inner_function,
        regexp_replace(
            function, '((\.<locals>)?\.<(genexpr|listcomp|dictcomp|setcomp|lambda)>)+$', ''
        ) AS function
    FROM trace.places
), f AS (
    SELECT
        function,
        file,
        source,
        arg_max(line, coalesce(self_ns, samples)) AS line,
        sum(samples) AS samples,
        sum(coalesce(self_ns, samples)) AS time,
        sum(running_ns) AS running,
        coalesce(
            sum(total_ns) FILTER (inner_function = function),
            max(total_ns)
        ) AS total,
        sum(waiting_ns) AS waiting
    FROM n
    GROUP BY function, file, source
    HAVING sum(samples) > 0
)
SELECT
    function || ' (' || {include file_place} || coalesce(':' || line, '') || ')' AS name,
    samples,
    time,
    running,
    sum(samples) OVER (),
    sum(time) OVER (),
    total,
    source
FROM f
ORDER BY
    coalesce(
        running + 0.5 * least(waiting, (SELECT max(duration_ns) FROM kymo.runs)),
        time
    ) DESC,
    total DESC,
    name
LIMIT {FACTS_FUNCTIONS}
