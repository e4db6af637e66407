-- What the longest critical path consists of: kind, name, rank if there are several and one alone
-- has it, time, share, what the run would win without it, and the number of rows before the limit.
WITH c AS (
    {include longest_path}
), named AS (
    SELECT
        kind,
        {include path_name} AS name,
        sum(duration_ns) AS ns,
        max(all_win_ns) AS win_ns,
        count(DISTINCT rank) AS ranks,
        any_value(rank) AS rank
    FROM c
    GROUP BY 1, 2
)
SELECT
    kind,
    name,
    CASE
        WHEN ranks = 1 AND (SELECT count(DISTINCT rank) FROM c) > 1 THEN rank
    END,
    ns,
    ns / sum(ns) OVER (),
    win_ns,
    count(*) OVER ()
FROM named
ORDER BY ns DESC, name
LIMIT {limit}
