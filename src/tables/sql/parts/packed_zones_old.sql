-- trace.zones of a packed file without hosts.
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
    n.instance
FROM zone_rows z
JOIN names n ON n.name_id = z.name_id
JOIN zone_threads t ON t.thread_id = z.thread_id
