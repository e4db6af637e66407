-- levels: the bytes live after each row; 0 after a row that ends a session. Only the columns needed
-- are sorted.
levels AS (
    SELECT
        process_id,
        ts_ns,
        session,
        part,
        CASE WHEN rank = 2 THEN 0
            ELSE sum(bytes) OVER (
                PARTITION BY process_id, session ORDER BY ts_ns, rank ROWS UNBOUNDED PRECEDING
            )
        END AS live_bytes
    FROM (
        SELECT
            process_id,
            ts_ns,
            session,
            part,
            CASE WHEN place & {SCHEMA_ALLOC_KIND_MASK} > {SCHEMA_FREE_SAMPLED} THEN 2
                ELSE place & {SCHEMA_ALLOC_FREE_BIT}
            END::UTINYINT AS rank,
            ({include alloc_sign})
                * (what & {SCHEMA_ALLOC_SIZE_MASK})::BIGINT
                * ({include alloc_weight}) AS bytes
        FROM events
    )
)
