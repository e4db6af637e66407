-- A rank that came last at most of the last minute's collectives and cost the others a tenth of it.
WITH c AS (
    SELECT rank, group_name, seq, arrival_ns, wait_ns
    FROM dist.collectives
    WHERE NOT p2p AND seq IS NOT NULL
        AND arrival_ns > (SELECT max(duration_ns) FROM kymo.runs) - 60e9
), l AS (
    SELECT group_name, seq, max_by(rank, arrival_ns) AS rank, median(wait_ns) AS cost_ns
    FROM c
    GROUP BY group_name, seq
    HAVING count(*) > 1
)
SELECT rank
FROM l
GROUP BY rank
HAVING count(*) > 0.5 * (SELECT count(*) FROM l) AND count(*) >= 10 AND sum(cost_ns) > 6e9
