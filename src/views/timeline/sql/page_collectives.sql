-- Collectives that a report can join: those that ranks waited for longest, with all their ranks.
WITH calls AS (
    SELECT
        rank, host, group_name, seq, op, bytes, arrival_ns, end_ns, wait_ns,
        max(wait_ns) OVER w AS most_ns,
        count(*) OVER w AS present
    FROM dist.collectives
    WHERE seq IS NOT NULL AND arrival_ns IS NOT NULL AND NOT p2p
    WINDOW w AS (PARTITION BY group_name, seq)
)
SELECT * EXCLUDE (most_ns, present)
FROM calls
WHERE present > 1
ORDER BY most_ns DESC, group_name, seq, arrival_ns DESC
LIMIT 3000
