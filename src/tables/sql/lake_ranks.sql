-- dist.ranks of a job of a lake. {files}: the ranks that each host has recorded. A rank that no
-- host has is a row, too: each of them states how many ranks the job has.
WITH
known AS (
    {files}
),
mains AS (
    SELECT *
    FROM known
    WHERE pid IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY rank, coalesce(attempt, 0) ORDER BY collectives DESC, first_ns, host, pid
    ) = 1
),
expected AS (
    SELECT unnest(range(max(ranks)))::INTEGER AS rank, max(ranks) AS ranks
    FROM known
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
ORDER BY 1, 6
