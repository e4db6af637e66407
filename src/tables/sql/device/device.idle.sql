-- Idle time of devices on the critical path: what the host did meanwhile, and the cause.
--
-- step         BIGINT   step that the host was in; 0 in a recording without steps
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- device       VARCHAR  device
-- start_ns     BIGINT   start of what the host did, in ns since the recording began
-- idle_ns      BIGINT   time of it in which nothing ran on the device
-- cause        VARCHAR  data: the host loaded data; synchronisation: it had waited for the device
--                       before it queued more; launch: it called the runtime, or the operation was
--                       on its way; host: it did something else
-- name         VARCHAR  operator, zone or call; for synchronisation the call that waited
-- function     VARCHAR  Python function around it, of own code if there is one
-- file         VARCHAR  file of that function
-- line         INTEGER  line in that file
-- module       VARCHAR  torch module around it
-- zone         VARCHAR  operator around it
-- pid          INTEGER  process ID
-- host         VARCHAR  host name
--
-- The path leaves the device when the host is what it waits for. A run is what lies between two
-- operations on the path. A wait in it is the cause if the operations before it took at least half
-- as long as the device was idle after it: queueing ahead would have hidden that much.
WITH
{include device_classes},
none AS (
    SELECT host, pid, device, start_ns AS t FROM classed LIMIT 0
),
{include device_spans further=none},
idle AS MATERIALIZED (
    SELECT
        host,
        pid,
        device,
        t,
        NOT (computes OR communicates OR moves) AS is_idle,
        coalesce(sum(
            CASE WHEN computes OR communicates OR moves THEN 0 ELSE span_ns END
        ) OVER (
            PARTITION BY host, pid, device
            ORDER BY t
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ), 0) AS before_ns
    FROM spans
),
devices AS (
    SELECT host, pid, device, max(t) AS last_ns
    FROM idle
    GROUP BY host, pid, device
),
path AS MATERIALIZED (
    SELECT
        *,
        kind IN ('kernel', 'copy', 'collective') AS runs,
        kind = 'wait' AND NOT regexp_matches(name, '^(between |launched,)') AS waits,
        sum((kind IN ('kernel', 'copy', 'collective'))::INT) OVER (
            PARTITION BY path ORDER BY start_ns, duration_ns
        ) AS stretch
    FROM kymo_critical_path()
),
pieces AS MATERIALIZED (
    SELECT
        p.*,
        d.device,
        least(p.start_ns, d.last_ns) AS from_ns,
        least(p.start_ns + p.duration_ns, d.last_ns) AS to_ns
    FROM path p
    JOIN devices d ON d.host = coalesce(p.host, '') AND d.pid = p.pid
    WHERE NOT p.runs
),
begun AS (
    SELECT p.*, i.before_ns + CASE WHEN i.is_idle THEN p.from_ns - i.t ELSE 0 END AS from_idle_ns
    FROM pieces p
    ASOF JOIN idle i
        ON i.host = coalesce(p.host, '')
        AND i.pid = p.pid
        AND i.device = p.device
        AND i.t <= p.from_ns
),
ended AS MATERIALIZED (
    SELECT
        p.*,
        i.before_ns + CASE WHEN i.is_idle THEN p.to_ns - i.t ELSE 0 END - p.from_idle_ns AS idle_ns
    FROM begun p
    ASOF JOIN idle i
        ON i.host = coalesce(p.host, '')
        AND i.pid = p.pid
        AND i.device = p.device
        AND i.t <= p.to_ns
),
stretches AS MATERIALIZED (
    SELECT path, stretch, sum(idle_ns) AS idle_ns
    FROM ended
    GROUP BY path, stretch
),
calls AS (
    SELECT
        path,
        stretch,
        arg_max({'name': name, 'function': function, 'file': file, 'line': line,
            'module': module, 'zone': zone}, duration_ns) AS call
    FROM ended
    WHERE waits
    GROUP BY path, stretch
),
-- Operations count for the wait after them; a collective waits for other ranks, too.
busy AS (
    SELECT s.path, s.stretch, sum(p.duration_ns) AS busy_ns
    FROM (
        SELECT path, stretch, sum(duration_ns) AS duration_ns
        FROM path
        WHERE kind IN ('kernel', 'copy')
        GROUP BY path, stretch
    ) p
    ASOF JOIN stretches s ON s.path = p.path AND p.stretch <= s.stretch
    GROUP BY s.path, s.stretch
),
waited AS MATERIALIZED (
    SELECT s.path, s.stretch, c.call
    FROM stretches s
    JOIN calls c ON c.path = s.path AND c.stretch = s.stretch
    JOIN busy b ON b.path = s.path AND b.stretch = s.stretch
    WHERE b.busy_ns * 2 >= s.idle_ns
),
caused AS (
    SELECT
        e.*,
        w.call,
        CASE
            WHEN regexp_matches(
                concat_ws(' ', e.name, e.zone, e.function), 'DataLoader|_next_data|data_loader'
            ) THEN 'data'
            WHEN w.call IS NOT NULL THEN 'synchronisation'
            WHEN e.kind = 'launch' THEN 'launch'
            WHEN e.kind = 'wait' AND NOT e.waits THEN 'launch'
            ELSE 'host'
        END AS cause
    FROM ended e
    LEFT JOIN waited w ON w.path = e.path AND w.stretch = e.stretch
    WHERE e.idle_ns > 0
)
SELECT
    step,
    rank,
    device,
    start_ns,
    idle_ns::BIGINT AS idle_ns,
    cause,
    CASE WHEN cause = 'synchronisation' THEN call.name ELSE name END AS name,
    CASE WHEN cause = 'synchronisation' THEN call.function ELSE function END AS function,
    CASE WHEN cause = 'synchronisation' THEN call.file ELSE file END AS file,
    CASE WHEN cause = 'synchronisation' THEN call.line ELSE line END AS line,
    CASE WHEN cause = 'synchronisation' THEN call.module ELSE module END AS module,
    CASE WHEN cause = 'synchronisation' THEN call.zone ELSE zone END AS zone,
    pid,
    host
FROM caused
ORDER BY start_ns
