-- The ranks of this host. Those that recorded elsewhere are written there; the number of ranks
-- tells which are missing.
FROM dist.ranks
WHERE pid IS NOT NULL
