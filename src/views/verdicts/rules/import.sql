-- threshold: 0.10
-- weight: 0.5
-- weight_with_steps: 0.02
-- least_s: 2
-- sentence: Importing modules takes {share} of the run ({won})[; the costliest is {name} with {a}].
-- evidence: imports run before the first step
-- advice: import fewer modules, and only where they are needed: python -X importtime lists them
-- zones_if: imports_long
-- tab: flame?of=samples
-- query: SELECT stack, count(*) FROM python.samples GROUP BY 1 ORDER BY 2 DESC
--
-- Imports happen once: in a program with steps, what recurs in every step ranks before them, in a
-- short trial too.
--
-- Two estimates, from zones (r) and from stack samples (s). The samples win if they show more than
-- twice as much: then most zones were lost.
--
-- Zones: the outermost imports of each thread, each named after the file that ran longest in it.
-- The program's own file is not an import. A recording has many zones: they are read only for
-- processes whose imports take more than 0.5 s by the totals.
-- Samples: stacks inside an import, by the file that the program imported. The place is the line
-- of the program's own code that imports it, or that calls what does; python -m has no such line.
WITH z AS (
    SELECT
        host,
        pid,
        tid,
        name,
        file,
        start_ns,
        start_ns + duration_ns AS end_ns,
        duration_ns AS ns,
        depth,
        name = '<module>' AS module
    FROM {zones} AS all_zones
    SEMI JOIN (
        SELECT host, pid
        FROM trace.regions
        WHERE {include is_load}
        GROUP BY host, pid
        HAVING sum(total_ns) > 5e8
    ) USING (host, pid)
    WHERE name = '<module>' OR {include is_load}
), l AS (
    SELECT
        *,
        coalesce(
            max(end_ns) FILTER (NOT module) OVER (
                PARTITION BY host, pid, tid
                ORDER BY start_ns, depth
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            -1
        ) AS until
    FROM z
), n AS (
    SELECT
        *,
        NOT module AND until <= start_ns AS outermost,
        sum(outermost::INT) OVER (PARTITION BY host, pid, tid ORDER BY start_ns, depth) AS load
    FROM l
), t AS (
    SELECT
        host,
        pid,
        max(ns) FILTER (outermost) AS ns,
        coalesce(
            arg_max(file, ns) FILTER (module AND end_ns <= until),
            any_value(name) FILTER (outermost AND starts_with(name, 'import '))
        ) AS file
    FROM n
    GROUP BY host, pid, tid, load
), r AS (
    SELECT
        sum(sum) AS ns,
        arg_max(file, sum) AS which,
        max(sum) AS most
    FROM (
        SELECT host, pid, file, sum(ns) AS sum
        FROM t
        GROUP BY host, pid, file
    )
    WHERE sum > 0
    GROUP BY host, pid
    ORDER BY 1 DESC
    LIMIT 1
), i AS (
    SELECT
        *,
        list_position(
            list_transform(list_reverse(stack), lambda x: starts_with(x, '_find_and_load ')), true
        ) AS load_at,
        len(stack) - list_position(stack, place) + 1 AS own_at,
        CASE WHEN own_at < load_at THEN place ELSE list_reverse(stack)[load_at - 1] END AS line,
        CASE WHEN NOT contains(line, '(<frozen ') THEN line END AS importer
    FROM {include weighted_samples}
    WHERE tid = pid
), f AS (
    SELECT
        contains(array_to_string(stack, ';'), '_find_and_load') AS inside,
        nullif(
            regexp_extract(
                array_to_string(list_reverse(stack), ';'),
                '_find_and_load .*?;<module> \((.*?):[0-9]+\)(;|$)',
                1
            ),
            ''
        ) AS file,
        mode(importer) AS place,
        sum(weight) AS k,
        count(*) AS n
    FROM i
    GROUP BY 1, 2
), s AS (
    SELECT
        {run_ns} * sum(k) FILTER (inside) / sum(k) AS ns,
        arg_max(file, k) FILTER (inside AND file IS NOT NULL) AS which,
        {run_ns} * max(k) FILTER (inside AND file IS NOT NULL) / sum(k) AS most,
        arg_max(place, k) FILTER (inside AND file IS NOT NULL) AS place,
        max(k) FILTER (inside AND file IS NOT NULL) / sum(k) FILTER (inside) AS share
    FROM f
    HAVING sum(n) >= 20 AND sum(k) > 0
), x AS (
    SELECT
        coalesce(r.ns, 0) AS a,
        coalesce(s.ns, 0) AS b,
        CASE WHEN b > 2 * a THEN s.which ELSE r.which END AS which,
        CASE WHEN b > 2 * a THEN s.most ELSE r.most END AS most
    FROM (SELECT 1)
    LEFT JOIN r ON true
    LEFT JOIN s ON true
)
SELECT
    greatest(a, b),
    {run_ns},
    regexp_extract(which, '([^/]+/)?[^/]*$'),
    0,
    most,
    0,
    (SELECT place FROM s) AS place,
    (SELECT share FROM s) AS place_share
FROM x
WHERE greatest(a, b) > 5e8
