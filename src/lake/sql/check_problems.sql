-- What is missing in a job of a lake, a sentence for each.
SELECT text
FROM kymo.problems
UNION ALL
SELECT
    'rank ' || rank || ' wrote nothing: what it did is not known'
FROM dist.ranks
WHERE state = 'wrote nothing'
UNION ALL
SELECT
    'pid ' || pid || ' of ' || host || coalesce(', rank ' || rank, '') || ' ran at its last flush, '
    || greatest(0, round((epoch_ns(now()) - flushed_unix_ns) / 1e9))::BIGINT
    || ' s ago: rows that came later are not in the lake'
FROM (
    SELECT p.pid, p.host, p.rank, max(f.flushed_unix_ns) AS flushed_unix_ns
    FROM kymo.processes p
    JOIN kymo.flushes f ON f.host = p.host AND f.pid = p.pid
    WHERE p.state = 'live'
    GROUP BY p.pid, p.host, p.rank
)
UNION ALL
-- Tables with a row for each row of their streams.
SELECT
    c.table_name || ' has ' || t.n || ' rows, its flushes wrote ' || c.in_lake
    || ': files were removed or cannot be read'
FROM (
    SELECT table_name, sum(in_lake)::BIGINT AS in_lake
    FROM kymo.flushes
    GROUP BY table_name
) c
JOIN (
    SELECT 'trace.steps' AS table_name, count(*) AS n
    FROM trace.steps
    UNION ALL
    SELECT 'trace.zones', count(*)
    FROM trace.zones
    UNION ALL
    SELECT 'host.process', count(*)
    FROM host.process
    UNION ALL
    SELECT 'trace.counters', count(*)
    FROM trace.counters
    UNION ALL
    SELECT 'alloc.rows', count(*)
    FROM alloc.rows
    UNION ALL
    SELECT 'host.cgroup', count(*)
    FROM host.cgroup
    UNION ALL
    SELECT 'host.cpu', count(*)
    FROM host.cpu
    UNION ALL
    SELECT 'host.gpu', count(*)
    FROM host.gpu
    UNION ALL
    SELECT 'host.io', count(*)
    FROM host.io
    UNION ALL
    SELECT 'host.memory', count(*)
    FROM host.memory
    UNION ALL
    SELECT 'host.network', count(*)
    FROM host.network
    UNION ALL
    SELECT 'host.threads', count(*)
    FROM host.threads
) t
    USING (table_name)
WHERE t.n < c.in_lake
