-- trace.zones of a packed file. The view names its tables without a schema: in a file called
-- trace.kymo, DuckDB takes "trace" for the database. A packed file with another view is refused, so
-- an earlier text stays in packed_zones_old.sql.
CREATE VIEW zones AS
SELECT
    n.source,
    n.name,
    n.file,
    n.line,
    z.start_ns,
    z.duration_ns,
    z.depth::INTEGER AS depth,
    t.pid,
    t.tid,
    t.thread,
    t.rank,
    z.step::BIGINT AS step,
    n.instance,
    t.host
FROM zone_rows z
JOIN names n ON n.name_id = z.name_id
JOIN zone_threads t ON t.thread_id = z.thread_id
