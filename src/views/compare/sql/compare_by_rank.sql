-- The own time of each rank: from the end of its last collective to its arrival at the next, summed
-- by step, or by collective if there are no steps. Of the last attempt. In a synchronous job all
-- steps are equally long, and a rank that waits for others is not slow. Without collectives: steps.
WITH
ranks AS (
    SELECT *
    FROM dist.ranks
    WHERE pid IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY rank ORDER BY attempt DESC NULLS LAST) = 1
),
calls AS (
    SELECT
        c.rank,
        c.host,
        c.step,
        c.arrival_ns,
        max(c.end_ns) OVER (
            PARTITION BY c.rank ORDER BY c.arrival_ns
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS before_ns,
        row_number() OVER (PARTITION BY c.rank ORDER BY c.arrival_ns) AS n
    FROM {include last_attempt} c
    WHERE NOT c.p2p AND c.arrival_ns IS NOT NULL AND c.rank IS NOT NULL
),
own AS (
    SELECT
        rank,
        host,
        CASE WHEN max(step) OVER () > 0 THEN step ELSE n END AS unit,
        greatest(arrival_ns - before_ns, 0) AS ns
    FROM calls
    WHERE before_ns IS NOT NULL
)
SELECT rank, host, unit, sum(ns)::DOUBLE AS ns
FROM own
GROUP BY rank, host, unit
UNION ALL
SELECT s.rank, s.host, s.step, s.duration_ns::DOUBLE
FROM trace.steps s
JOIN ranks r ON r.rank = s.rank AND r.pid = s.pid AND r.host IS NOT DISTINCT FROM s.host
WHERE NOT EXISTS (FROM own)
ORDER BY 1, 3
