-- dist.clocks in Spark; see lake_clocks.sql.
SELECT
    rank,
    host,
    clock,
    t0_ns,
    offset_ns,
    drift_ppm,
    error_ns,
    collectives,
    method,
    applied,
    reason
FROM dist.clocks_rows
UNION ALL
SELECT
    rank,
    host,
    CAST(dense_rank() OVER (ORDER BY host) - 1 AS INT) AS clock,
    CAST(0 AS BIGINT) AS t0_ns,
    CAST(0 AS BIGINT) AS offset_ns,
    CAST(0 AS DOUBLE) AS drift_ppm,
    CASE WHEN hosts = 1 THEN CAST(0 AS BIGINT) END AS error_ns,
    CAST(0 AS BIGINT) AS collectives,
    CASE WHEN hosts = 1 THEN 'same clock' ELSE 'wall clock' END AS method,
    false AS applied,
    CAST(NULL AS STRING) AS reason
FROM dist.ranks
CROSS JOIN (
    SELECT count(DISTINCT host) AS hosts
    FROM dist.ranks_rows
) h
CROSS JOIN (
    SELECT count(*) AS aligned
    FROM dist.clocks_rows
) a
WHERE host IS NOT NULL AND aligned = 0
