-- Time of each rank's devices: computation, communication or copies alone, idle.
--
-- rank              INTEGER  rank of the process; NULL outside a distributed run
-- device            VARCHAR  device
-- total_ns          BIGINT   time from the first operation to the end of the last
-- computation_ns    BIGINT   time in which a kernel computed
-- communication_ns  BIGINT   time in which operations communicated and none computed
-- memory_ns         BIGINT   time in which memory was copied or filled, and nothing else ran
-- idle_ns           BIGINT   time in which nothing ran
-- busy              DOUBLE   share of total_ns in which something ran, 0 to 1
-- pid               INTEGER  process ID
-- host              VARCHAR  host name; empty if not known
WITH
{include device_classes},
none AS (
    SELECT host, pid, device, start_ns AS t FROM classed LIMIT 0
),
{include device_spans further=none},
summed AS (
    SELECT
        host,
        pid,
        device,
        sum(span_ns)::BIGINT AS total_ns,
        sum(CASE WHEN computes THEN span_ns ELSE 0 END)::BIGINT AS computation_ns,
        sum(CASE WHEN communicates AND NOT computes THEN span_ns ELSE 0 END)::BIGINT
            AS communication_ns,
        sum(CASE WHEN moves AND NOT computes AND NOT communicates THEN span_ns ELSE 0 END)::BIGINT
            AS memory_ns
    FROM spans
    GROUP BY host, pid, device
),
ranks AS (
    SELECT host, pid, device, any_value(rank) AS rank
    FROM classed
    GROUP BY host, pid, device
)
SELECT
    r.rank,
    s.device,
    coalesce(s.total_ns, 0) AS total_ns,
    s.computation_ns,
    s.communication_ns,
    s.memory_ns,
    coalesce(s.total_ns, 0) - s.computation_ns - s.communication_ns - s.memory_ns AS idle_ns,
    round((s.computation_ns + s.communication_ns + s.memory_ns) / nullif(s.total_ns, 0), 4) AS busy,
    s.pid,
    s.host
FROM summed s
JOIN ranks r ON r.host = s.host AND r.pid = s.pid AND r.device IS NOT DISTINCT FROM s.device
ORDER BY r.rank, s.pid, s.device
