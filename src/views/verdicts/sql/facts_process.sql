-- Rank and number of ranks of the program (of a child if the program itself recorded nothing), and
-- the number of processes that recorded.
SELECT first(rank), first(ranks), count(*)
FROM (
    SELECT p.rank, p.ranks
    FROM kymo.processes p, kymo.runs r
    WHERE p.role = 'target'
    ORDER BY p.pid <> r.pid, p.rank, p.pid
)
