-- The time of a step in each attempt: of the lowest rank that has steps, or, without steps, the
-- time from one collective of that rank to the next.
WITH
processes AS (
    SELECT rank, host, pid, coalesce(attempt, 0) AS attempt
    FROM dist.ranks
    WHERE pid IS NOT NULL
),
steps AS (
    SELECT p.attempt, p.rank, p.host, s.start_ns AS at_ns, s.duration_ns::DOUBLE AS ns
    FROM trace.steps s
    JOIN processes p ON p.rank = s.rank AND p.pid = s.pid AND p.host IS NOT DISTINCT FROM s.host
),
calls AS (
    SELECT
        p.attempt,
        p.rank,
        p.host,
        c.arrival_ns AS at_ns,
        (c.arrival_ns - lag(c.arrival_ns) OVER (
            PARTITION BY p.attempt, p.rank, c.group_name ORDER BY c.arrival_ns
        ))::DOUBLE AS ns
    FROM dist.collectives c
    JOIN processes p ON p.rank = c.rank AND p.pid = c.pid AND p.host IS NOT DISTINCT FROM c.host
    WHERE NOT c.p2p AND c.arrival_ns IS NOT NULL
    QUALIFY c.group_size = max(c.group_size) OVER ()
),
units AS (
    FROM steps
    UNION ALL
    FROM calls
    WHERE ns IS NOT NULL AND NOT EXISTS (FROM steps)
)
SELECT attempt, host, at_ns, ns
FROM units
QUALIFY rank = min(rank) OVER (PARTITION BY attempt)
ORDER BY attempt, at_ns
