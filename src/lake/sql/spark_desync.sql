-- dist.desync in Spark; see dist.desync.sql.
WITH
calls AS (
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
        min_by(bytes, rank) AS bytes,
        count(DISTINCT rank) AS ranks,
        min(rank) AS first_rank,
        min_by(zone, rank) FILTER (WHERE zone IS NOT NULL) AS zone
    FROM calls
    GROUP BY group_name, seq, op, dtype, compared_bytes
),
most AS (
    SELECT *
    FROM (
        SELECT
            *,
            count(*) OVER (PARTITION BY group_name, seq) AS kinds,
            row_number() OVER (
                PARTITION BY group_name, seq ORDER BY ranks DESC, first_rank
            ) AS place
        FROM kinds
    ) t
    WHERE kinds > 1 AND place = 1
),
different AS (
    SELECT
        c.*,
        m.op AS expected_op,
        m.bytes AS expected_bytes,
        m.dtype AS expected_dtype,
        m.zone AS expected_zone,
        CASE
            WHEN NOT c.op <=> m.op THEN 'op'
            WHEN NOT c.dtype <=> m.dtype THEN 'dtype'
            WHEN NOT c.compared_bytes <=> m.compared_bytes THEN 'bytes'
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
