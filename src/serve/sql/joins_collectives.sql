-- Collectives of a time range, those that ranks waited for the longest first.
SELECT rank, host, group_name, seq, op, bytes, arrival_ns, end_ns, wait_ns
FROM (
    SELECT
        *,
        max(wait_ns) OVER (PARTITION BY group_name, seq, p2p) AS most_ns,
        count(*) OVER (PARTITION BY group_name, seq, p2p) AS present
    FROM dist.collectives
    WHERE seq IS NOT NULL AND arrival_ns < {to} AND end_ns >= {from} AND {ranks}
)
WHERE present > 1
ORDER BY most_ns DESC, group_name, seq, arrival_ns
LIMIT {limit}
