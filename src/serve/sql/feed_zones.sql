-- Zones of a packed file, whose rows are in the order of their start. The joins of the view keep
-- that order if DuckDB hashes the names and threads, which it does unless there are about as many
-- of them as zones: feed_zones_sorted.sql is for few zones.
SELECT pid, tid, depth, start_ns, duration_ns, source, name, file, line, thread, rank, host
FROM trace.zones
