-- Number of allocations that a row represents. A sample was taken with probability 1 - exp(-size /
-- mean), so it represents 1 / (1 - exp(-size / mean)) allocations of its size.
CASE
    WHEN place & {SCHEMA_ALLOC_KIND_MASK} IN ({SCHEMA_ALLOC_SAMPLED}, {SCHEMA_FREE_SAMPLED})
        AND what & {SCHEMA_ALLOC_SIZE_MASK} > 0
        THEN 1 / (1 - exp((what & {SCHEMA_ALLOC_SIZE_MASK}) / -{KYMO_MEMORY_MEAN}.0))
    ELSE 1
END
