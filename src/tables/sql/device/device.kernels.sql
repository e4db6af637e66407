-- Operations of devices by class and name, with their times.
--
-- rank       INTEGER  rank of the process; NULL outside a distributed run
-- class      VARCHAR  computation, communication or memory
-- name       VARCHAR  operation name
-- count      BIGINT   number of operations
-- total_ns   BIGINT   total duration
-- min_ns     BIGINT   shortest duration
-- max_ns     BIGINT   longest duration
-- mean_ns    DOUBLE   mean duration
-- stddev_ns  DOUBLE   sample standard deviation (n - 1); NULL for a single operation
-- share      DOUBLE   share of total_ns of all operations of the rank's device, 0 to 1
-- bytes      BIGINT   bytes moved
-- device     VARCHAR  device
-- pid        INTEGER  process ID
-- host       VARCHAR  host name; empty if not known
WITH
{include device_classes},
moved AS (
    SELECT host, pid, device, name, sum(TRY_CAST(bytes AS BIGINT))::BIGINT AS bytes
    FROM kymo_scan('device.ops')
    WHERE bytes > 0
    GROUP BY host, pid, device, name
),
summed AS (
    SELECT
        host,
        pid,
        device,
        class,
        name,
        any_value(rank) AS rank,
        count(*) AS count,
        sum(end_ns - start_ns)::BIGINT AS total_ns,
        min(end_ns - start_ns) AS min_ns,
        max(end_ns - start_ns) AS max_ns,
        avg(end_ns - start_ns) AS mean_ns,
        stddev_samp(end_ns - start_ns) AS stddev_ns
    FROM classed
    GROUP BY host, pid, device, class, name
)
SELECT
    s.rank,
    s.class,
    s.name,
    s.count,
    s.total_ns,
    s.min_ns,
    s.max_ns,
    s.mean_ns,
    s.stddev_ns,
    round(s.total_ns / nullif(sum(s.total_ns) OVER of_device, 0), 4) AS share,
    m.bytes,
    s.device,
    s.pid,
    s.host
FROM summed s
LEFT JOIN moved m ON m.host = s.host AND m.pid = s.pid AND m.device = s.device AND m.name = s.name
WINDOW of_device AS (PARTITION BY s.host, s.pid, s.device)
ORDER BY s.total_ns DESC, s.rank, s.name
