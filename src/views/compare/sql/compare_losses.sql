-- Zones and steps that were emitted, and how many of them were lost.
SELECT sum(emitted), sum(overwritten + dropped)
FROM kymo.streams
WHERE table_name IN ('trace.zones', 'trace.steps')
