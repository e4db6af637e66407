-- dist.ranks in Spark; see lake_ranks.sql.
WITH
mains AS (
    SELECT *
    FROM (
        SELECT
            *,
            row_number() OVER (
                PARTITION BY rank, coalesce(attempt, 0)
                ORDER BY collectives DESC NULLS LAST, first_ns ASC NULLS LAST, host, pid
            ) AS place
        FROM dist.ranks_rows
        WHERE pid IS NOT NULL
    ) t
    WHERE place = 1
),
expected AS (
    SELECT explode(sequence(0, ranks - 1)) AS rank, ranks
    FROM (
        SELECT max(ranks) AS ranks
        FROM dist.ranks_rows
    ) t
    WHERE ranks > 0
)
SELECT
    coalesce(m.rank, e.rank) AS rank,
    m.host,
    m.pid,
    m.local_rank,
    coalesce(m.ranks, e.ranks) AS ranks,
    m.attempt,
    coalesce(m.state, 'wrote nothing') AS state,
    m.exit_code,
    m.signal,
    m.first_ns,
    m.last_ns,
    coalesce(m.collectives, 0) AS collectives,
    m.last_seq
FROM mains m
FULL JOIN expected e ON e.rank = m.rank
