-- dist.clocks of a job of a lake. {files}: the table of aligned clocks; without it the wall
-- clocks of the hosts count.
WITH aligned AS (
    {files}
)
FROM aligned
UNION ALL
SELECT
    rank,
    host,
    (dense_rank() OVER (ORDER BY host) - 1)::INTEGER AS clock,
    0 AS t0_ns,
    0 AS offset_ns,
    0::DOUBLE AS drift_ppm,
    CASE WHEN (SELECT count(DISTINCT host) FROM dist.ranks) = 1 THEN 0 END AS error_ns,
    0 AS collectives,
    CASE
        WHEN (SELECT count(DISTINCT host) FROM dist.ranks) = 1 THEN 'same clock'
        ELSE 'wall clock'
    END AS method,
    false AS applied,
    NULL AS reason
FROM dist.ranks
WHERE host IS NOT NULL AND NOT EXISTS (FROM aligned)
