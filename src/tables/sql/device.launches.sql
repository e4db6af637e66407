-- Who launched each operation: the step, the torch module, the Python function and the zones
--         around.
--
-- step           BIGINT     the step that ran then; 0 before the first
-- module         VARCHAR    the innermost torch module that it was launched in, or another part of
--         torch: backward, AdamW.step, DataLoader.next
-- function       VARCHAR    the innermost Python function or region; functions by kymo run --python
-- file           VARCHAR    where that function is
-- line           INTEGER    its line in that file
-- zone           VARCHAR    the zone that queued it; NULL: none was open
-- path           VARCHAR[]  all zones that were open, the outermost first, as far as they are
--         kept: path[-1] is zone, path[-2] what is around it
-- kind           VARCHAR    kernel, read, write, …, as in device.ops
-- name           VARCHAR    the operation's name
-- device         VARCHAR    the device
-- queue          VARCHAR    the queue or stream
-- queued_ns      BIGINT     when the host queued it
-- start_ns       BIGINT     when the device began
-- duration_ns    BIGINT     how long it took the device
-- bytes          BIGINT     what it moved
-- zone_start_ns  BIGINT     when that zone began: with tid, its row in trace.zones
-- pid            INTEGER    the process
-- tid            INTEGER    the thread's number in the kernel
-- thread         VARCHAR    the thread's name
SELECT
    step,
    module,
    function,
    file,
    line,
    zone,
    path,
    ['kernel', 'read', 'write', 'copy', 'fill', 'map', 'unmap', 'migrate', 'marker', 'barrier',
        'native', 'other', 'execution', 'wait', 'module', '?'][kind + 1] AS kind,
    name,
    device,
    queue,
    CASE WHEN (flags & 256) > 0 THEN queued_ns END AS queued_ns,
    CASE WHEN (flags & 1024) > 0 THEN start_ns END AS start_ns,
    CASE WHEN (flags & 3072) = 3072 THEN end_ns - start_ns END AS duration_ns,
    TRY_CAST(bytes AS BIGINT) AS bytes,
    CASE WHEN zone IS NOT NULL THEN zone_start_ns END AS zone_start_ns,
    pid,
    tid,
    thread
FROM (WITH ops AS MATERIALIZED (SELECT *, CASE WHEN zone IS NOT NULL THEN zone_start_ns END AS
        launch_ns FROM kymo_scan('device.ops') WHERE kind <> 13), launches AS MATERIALIZED (SELECT
        DISTINCT thread_id, launch_ns, zone_id FROM ops WHERE launch_ns IS NOT NULL), zones AS
        MATERIALIZED (FROM (SELECT thread_id, depth::BIGINT AS depth, start_ns, start_ns +
        duration_ns AS end_ns, name_id FROM kymo_scan('trace.zones') UNION ALL SELECT thread_id,
        depth, start_ns, 9223372036854775807, name_id FROM kymo_meta('open_zones')) SEMI JOIN
        launches USING (thread_id)), deepest AS (SELECT thread_id, max(depth) AS depth FROM zones
        GROUP BY thread_id), launching AS MATERIALIZED (SELECT l.*, coalesce(max(z.depth),
        max(d.depth) + 1, 0) AS depth FROM launches l LEFT JOIN zones z ON z.thread_id =
        l.thread_id AND z.start_ns = l.launch_ns AND z.name_id = l.zone_id LEFT JOIN deepest d ON
        d.thread_id = l.thread_id GROUP BY ALL), begun AS (SELECT v.*, z.start_ns FROM (SELECT
        thread_id, launch_ns, zone_id, unnest(range(depth)) AS depth FROM launching) v ASOF JOIN
        zones z ON z.thread_id = v.thread_id AND z.depth = v.depth AND z.start_ns <= v.launch_ns),
        around AS (SELECT b.* EXCLUDE (start_ns), arg_max(z.name_id, z.end_ns) AS name_id FROM
        begun b JOIN zones z USING (thread_id, depth, start_ns) WHERE z.end_ns >= b.launch_ns GROUP
        BY ALL UNION ALL BY NAME SELECT *, zone_id AS name_id FROM launching), paths AS (SELECT
        thread_id, launch_ns, zone_id, list(name ORDER BY depth) AS path, arg_max(name, depth)
        FILTER (source = 'torch') AS module, arg_max({'name': name, 'file': file, 'line': line},
        depth) FILTER (source = 'python') AS function FROM around JOIN kymo_meta('names') USING
        (name_id) GROUP BY ALL) SELECT o.*, p.path, p.module, p.function.name AS function,
        p.function.file AS file, p.function.line AS line FROM ops o LEFT JOIN paths p ON
        p.thread_id = o.thread_id AND p.launch_ns = o.launch_ns AND p.zone_id = o.zone_id)
