-- Contribution of a row to live memory: 1 for an allocation, -1 for a free, 0 for the end.
CASE
    WHEN place & {SCHEMA_ALLOC_KIND_MASK} > {SCHEMA_FREE_SAMPLED} THEN 0
    WHEN place & {SCHEMA_ALLOC_FREE_BIT} = 0 THEN 1
    ELSE -1
END
