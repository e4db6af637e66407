-- Ranks of a job, each with its newest attempt and what its lateness cost.
SELECT
    r.rank,
    r.host,
    r.state,
    l.times_last,
    l.cost_ns,
    l.waited_ns,
    l.collectives
FROM (
    SELECT *
    FROM dist.ranks
    QUALIFY row_number() OVER (PARTITION BY rank ORDER BY coalesce(attempt, 0) DESC) = 1
) r
LEFT JOIN (
    SELECT
        rank,
        sum(times_last)::BIGINT AS times_last,
        sum(cost_ns)::BIGINT AS cost_ns,
        sum(waited_ns)::BIGINT AS waited_ns,
        sum(collectives)::BIGINT AS collectives
    FROM dist.late
    GROUP BY rank
) l ON l.rank = r.rank
WHERE (SELECT count(*) FROM dist.ranks) > 1
ORDER BY r.rank
LIMIT 10000
