-- Ranks of the job: those that recorded, and those that are missing.
--
-- rank         INTEGER  global rank
-- host         VARCHAR  host name; NULL if the rank wrote nothing
-- pid          INTEGER  process ID of the rank's main process; NULL if the rank wrote nothing
-- local_rank   INTEGER  rank among the processes of its host; NULL if not known
-- ranks        INTEGER  number of ranks of the job
-- attempt      INTEGER  number of restarts of the job before this process; NULL if not known
-- state        VARCHAR  running, ended, killed, lost (gone, with no exit status seen), unknown (of
--                       another host) or wrote nothing: expected, and no process recorded
-- exit_code    INTEGER  exit status; NULL if there is none or it is not known
-- signal       VARCHAR  signal that killed the process; NULL if none
-- first_ns     BIGINT   time at which it began to record
-- last_ns      BIGINT   last recorded moment
-- collectives  BIGINT   number of collectives that it took part in
-- last_seq     BIGINT   number of its last collective in the group of all ranks; NULL if none
--
-- A rank has several processes if it starts some: its main process is the one that takes part in
-- collectives, or else the first. Each attempt is a row.
WITH
calls AS (
    SELECT
        process_id,
        count(DISTINCT call) AS collectives,
        max(seq) FILTER (
            (flags & {SCHEMA_COLLECTIVE_SEQ}) > 0
            AND group_size = (SELECT max(ranks) FROM kymo_meta('processes'))
        ) AS last_seq
    FROM kymo_scan('dist.collectives')
    GROUP BY process_id
),
processes AS (
    SELECT p.*, coalesce(c.collectives, 0) AS collectives, c.last_seq
    FROM kymo_meta('processes') p
    LEFT JOIN calls c ON c.process_id = p.process_id
    WHERE p.rank IS NOT NULL AND p.role <> 'command'
),
mains AS (
    SELECT *
    FROM processes
    QUALIFY row_number() OVER (
        PARTITION BY rank, coalesce(attempt, 0)
        ORDER BY collectives DESC, role = 'target' DESC, started_ns, process_id
    ) = 1
),
expected AS (
    SELECT unnest(range(max(ranks)))::INTEGER AS rank, max(ranks) AS ranks
    FROM processes
)
SELECT
    coalesce(m.rank, e.rank) AS rank,
    m.host,
    m.pid,
    m.local_rank,
    coalesce(m.ranks, e.ranks) AS ranks,
    m.attempt,
    CASE
        WHEN m.rank IS NULL OR m.role = 'collector' THEN 'wrote nothing'
        WHEN m.state = 'live' THEN 'running'
        WHEN m.state = 'ended' AND m.exit_code IS NULL AND NOT m.finished THEN 'lost'
        ELSE m.state
    END AS state,
    m.exit_code,
    m.signal,
    m.started_ns AS first_ns,
    m.ended_ns AS last_ns,
    coalesce(m.collectives, 0) AS collectives,
    TRY_CAST(m.last_seq AS BIGINT) AS last_seq
FROM mains m
FULL JOIN expected e ON e.rank = m.rank
ORDER BY 1, 6
