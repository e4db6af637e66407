-- Calls that have not ended.
FROM dist.collectives
WHERE state NOT IN ('completed', 'failed')
