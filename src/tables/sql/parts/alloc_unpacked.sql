-- unpacked: allocations and frees with their columns apart. freed_ns is the time of the next row of
-- the same address.
fates AS (
    SELECT
        process_id,
        session,
        ts_ns,
        place,
        what,
        lead(ts_ns) OVER (
            PARTITION BY process_id, session, place & {SCHEMA_ALLOC_PTR_MASK}
            ORDER BY ts_ns, place & {SCHEMA_ALLOC_FREE_BIT} DESC
        ) AS freed_ns
    FROM events
    WHERE place & {SCHEMA_ALLOC_KIND_MASK} <= {SCHEMA_FREE_SAMPLED}
),
unpacked AS (
    SELECT
        process_id,
        session,
        ts_ns,
        place & {SCHEMA_ALLOC_PTR_MASK} AS ptr,
        (place >> {SCHEMA_ALLOC_THREAD_SHIFT})::INTEGER AS thread_id,
        (what & {SCHEMA_ALLOC_SIZE_MASK})::BIGINT AS size,
        (what >> {SCHEMA_ALLOC_NODE_SHIFT})::INTEGER AS node,
        {include alloc_sign} AS sign,
        {include alloc_weight} AS weight,
        freed_ns
    FROM fates
)
