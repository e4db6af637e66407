-- Ranks that called something else than the others of their group at the same collective.
--
-- group_name      VARCHAR  process group
-- seq             BIGINT   number of the collective in its group
-- rank            INTEGER  rank that differs from most of the others
-- differs         VARCHAR  op, dtype or bytes: the first of these that differs
-- op              VARCHAR  operation that it called
-- bytes           BIGINT   bytes of its input
-- dtype           VARCHAR  element type
-- zone            VARCHAR  zone or function of its call; NULL if not known
-- expected_op     VARCHAR  operation of most ranks
-- expected_bytes  BIGINT   bytes of most ranks
-- expected_dtype  VARCHAR  element type of most ranks
-- expected_zone   VARCHAR  zone or function of the first of these; NULL if not known
-- state           VARCHAR  state of its call, as in dist.collectives
-- host            VARCHAR  host name
-- pid             INTEGER  process ID
--
-- The first row of a group is the cause: later numbers of a rank that called one more or one less
-- are shifted. Sizes are compared for all_reduce, broadcast and reduce, where all ranks must agree.
WITH
calls AS MATERIALIZED (
    SELECT
        *,
        CASE WHEN op IN ('all_reduce', 'broadcast', 'reduce') THEN bytes END AS compared_bytes
    FROM dist.collectives
    WHERE seq IS NOT NULL AND NOT p2p AND rank IS NOT NULL
),
kinds AS (
    SELECT
        group_name,
        seq,
        op,
        dtype,
        compared_bytes,
        any_value(bytes) AS bytes,
        count(DISTINCT rank) AS ranks,
        min(rank) AS first_rank,
        arg_min(zone, rank) AS zone
    FROM calls
    GROUP BY group_name, seq, op, dtype, compared_bytes
),
most AS (
    SELECT *
    FROM kinds
    QUALIFY count(*) OVER (PARTITION BY group_name, seq) > 1
        AND row_number() OVER (
            PARTITION BY group_name, seq ORDER BY ranks DESC, first_rank
        ) = 1
),
different AS (
    SELECT
        c.*,
        m.op AS expected_op,
        m.bytes AS expected_bytes,
        m.dtype AS expected_dtype,
        m.zone AS expected_zone,
        CASE
            WHEN c.op IS DISTINCT FROM m.op THEN 'op'
            WHEN c.dtype IS DISTINCT FROM m.dtype THEN 'dtype'
            WHEN c.compared_bytes IS DISTINCT FROM m.compared_bytes THEN 'bytes'
        END AS differs
    FROM calls c
    JOIN most m ON m.group_name = c.group_name AND m.seq = c.seq
)
SELECT
    group_name,
    seq,
    rank,
    differs,
    op,
    bytes,
    dtype,
    zone,
    expected_op,
    expected_bytes,
    expected_dtype,
    expected_zone,
    state,
    host,
    pid
FROM different
WHERE differs IS NOT NULL
ORDER BY group_name, seq, rank
