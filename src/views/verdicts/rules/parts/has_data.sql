-- The number of regions in which a program waits for data.
SELECT count(*)
FROM trace.regions
WHERE name IN ('data', 'DataLoader.next')
