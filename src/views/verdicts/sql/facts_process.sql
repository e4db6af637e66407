-- Rank and number of ranks of the program (of a child if the program itself recorded nothing; of a
-- job the lowest), and the number of processes that recorded.
SELECT first(rank), first(ranks), count(*)
FROM (
    SELECT p.rank, p.ranks
    FROM kymo.processes p
    WHERE p.role = 'target'
    ORDER BY (p.host, p.pid) NOT IN (SELECT (host, pid) FROM kymo.runs), p.rank, p.pid
)
