-- The ranks of a job, by host.
SELECT DISTINCT host, rank
FROM memory.main.lake_ranks
WHERE host IS NOT NULL AND rank IS NOT NULL
ORDER BY host, rank
