-- threshold: 0.05
-- weight: 0.9
-- sentence: Rank {name} is late: the other ranks wait for it for {share} of step time ({won} of
--     {whole}).
-- evidence: it is the slowest in {count} step{s}: {a}, where the median rank takes {b}
-- advice: check that rank's machine and data: run kymo report on its own recording
-- tab: timeline
-- query: SELECT step, rank, data_ns, forward_ns, duration_ns FROM trace.steps ORDER BY step, rank
--
-- One rank is the slowest in more than 60 % of the steps. Compared is the time of data and forward
-- if phases are recorded: the other phases include waiting for the other ranks.
WITH w AS (
    SELECT
        step,
        rank,
        coalesce(
            nullif(coalesce(data_ns, 0) + coalesce(forward_ns, 0), 0),
            duration_ns
        ) AS ns
    FROM trace.steps
    WHERE rank IS NOT NULL
), m AS (
    SELECT
        step,
        max(ns) AS most,
        median(ns) AS usual,
        arg_max(rank, ns) AS late
    FROM w
    GROUP BY step
    HAVING count(*) > 1
), l AS (
    SELECT late, count(*) AS n
    FROM m
    GROUP BY 1
    ORDER BY 2 DESC
    LIMIT 1
)
SELECT
    sum(most - usual),
    sum(most),
    any_value(l.late)::VARCHAR,
    any_value(l.n),
    median(most),
    median(usual)
FROM m, l
HAVING count(*) >= 5 AND any_value(l.n) > 0.6 * count(*)
