-- Origin of each device operation: step, torch module, Python function and open zones.
--
-- step           BIGINT     current step; 0 before the first
-- module         VARCHAR    innermost torch module that launched it, or another part of torch:
--                           backward, AdamW.step, DataLoader.next; for backward of an imported
--                           trace, the module of the forward operator
-- function       VARCHAR    innermost Python function or region; functions need kymo run --python
-- file           VARCHAR    file of that function
-- line           INTEGER    line in that file
-- zone           VARCHAR    host zone that queued it; NULL if none was open
-- path           VARCHAR[]  open zones, outermost first, as far as they are kept; path[-1] is zone,
--                           path[-2] its parent
-- kind           VARCHAR    kind of operation, as in device.ops
-- name           VARCHAR    operation name
-- device         VARCHAR    device
-- queue          VARCHAR    queue or stream
-- queued_ns      BIGINT     time at which the host queued it; NULL if not known
-- start_ns       BIGINT     start on the device; NULL if not known
-- duration_ns    BIGINT     time on the device; NULL if not known
-- bytes          BIGINT     bytes moved
-- zone_start_ns  BIGINT     start of the zone; with tid it identifies the row of trace.zones
-- pid            INTEGER    process ID
-- tid            INTEGER    kernel thread ID
-- thread         VARCHAR    thread name
-- rank           INTEGER    rank of the process; NULL outside a distributed run
-- host           VARCHAR    host name
--
-- The zones around a launch are found by depth. Zones of one thread and depth do not overlap, so
-- the one of each depth is the last that began before the launch. With a coarse clock several may
-- begin at the same time; all but the last of these have no length. An open zone has no end.
WITH
ops AS MATERIALIZED (
    SELECT *, CASE WHEN zone IS NOT NULL THEN zone_start_ns END AS launch_ns
    FROM kymo_scan('device.ops')
    WHERE kind <> {KYMO_DEVICE_WAIT}
),
launches AS MATERIALIZED (
    SELECT DISTINCT thread_id, launch_ns, zone_id
    FROM ops
    WHERE launch_ns IS NOT NULL
),
zones AS MATERIALIZED (
    FROM (
        SELECT
            thread_id,
            depth::BIGINT AS depth,
            start_ns,
            start_ns + duration_ns AS end_ns,
            name_id
        FROM kymo_scan('trace.zones')
        UNION ALL
        SELECT thread_id, depth, start_ns, {INT64_MAX}, name_id
        FROM kymo_meta('open_zones')
    )
    SEMI JOIN launches USING (thread_id)
),
deepest AS (
    SELECT thread_id, max(depth) AS depth
    FROM zones
    GROUP BY thread_id
),
-- The depth of the zone that launched; where it is no longer kept, one below all that are.
launching AS MATERIALIZED (
    SELECT l.*, coalesce(max(z.depth), max(d.depth) + 1, 0) AS depth
    FROM launches l
    LEFT JOIN zones z
        ON z.thread_id = l.thread_id
        AND z.start_ns = l.launch_ns
        AND z.name_id = l.zone_id
    LEFT JOIN deepest d ON d.thread_id = l.thread_id
    GROUP BY ALL
),
begun AS (
    SELECT v.*, z.start_ns
    FROM (
        SELECT thread_id, launch_ns, zone_id, unnest(range(depth)) AS depth
        FROM launching
    ) v
    ASOF JOIN zones z
        ON z.thread_id = v.thread_id
        AND z.depth = v.depth
        AND z.start_ns <= v.launch_ns
),
around AS (
    SELECT b.* EXCLUDE (start_ns), arg_max(z.name_id, z.end_ns) AS name_id
    FROM begun b
    JOIN zones z USING (thread_id, depth, start_ns)
    WHERE z.end_ns >= b.launch_ns
    GROUP BY ALL
    UNION ALL BY NAME
    SELECT *, zone_id AS name_id
    FROM launching
),
paths AS (
    SELECT
        thread_id,
        launch_ns,
        zone_id,
        list(name ORDER BY depth) AS path,
        arg_max(name, depth) FILTER (source = 'torch') AS module,
        arg_max({'name': name, 'file': file, 'line': line}, depth)
            FILTER (source = 'python') AS function
    FROM around
    JOIN kymo_meta('names') USING (name_id)
    GROUP BY thread_id, launch_ns, zone_id
)
SELECT
    o.step,
    coalesce(p.module, o.module) AS module,
    p.function.name AS function,
    p.function.file AS file,
    p.function.line AS line,
    o.zone,
    p.path,
    [{DEVICE_KIND_WORDS}][o.kind + 1] AS kind,
    o.name,
    o.device,
    o.queue,
    CASE WHEN (o.flags & {SCHEMA_DEVICE_QUEUED}) > 0 THEN o.queued_ns END AS queued_ns,
    CASE WHEN (o.flags & {SCHEMA_DEVICE_START}) > 0 THEN o.start_ns END AS start_ns,
    CASE WHEN (o.flags & {DEVICE_BOTH_ENDS}) = {DEVICE_BOTH_ENDS}
        THEN o.end_ns - o.start_ns
    END AS duration_ns,
    TRY_CAST(o.bytes AS BIGINT) AS bytes,
    o.launch_ns AS zone_start_ns,
    o.pid,
    o.tid,
    o.thread,
    o.rank,
    o.host
FROM ops o
LEFT JOIN paths p
    ON p.thread_id = o.thread_id
    AND p.launch_ns = o.launch_ns
    AND p.zone_id = o.zone_id
