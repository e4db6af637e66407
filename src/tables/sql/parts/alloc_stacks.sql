-- stacks: those that allocations refer to. All others are parts of these.
stacks AS (
    SELECT *
    FROM kymo_sites()
    WHERE (process_id, node) IN (
        SELECT DISTINCT process_id, (what >> {SCHEMA_ALLOC_NODE_SHIFT})::INTEGER
        FROM kymo_scan('alloc.rows')
        WHERE place & {SCHEMA_ALLOC_KIND_MASK} <= {SCHEMA_FREE_SAMPLED}
    )
)
