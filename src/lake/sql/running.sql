-- Processes that ran at their last flush.
SELECT count(*)
FROM kymo.processes
WHERE state = 'live'
