-- Communication of each rank's devices: hidden under computation, and exposed.
--
-- rank              INTEGER  rank of the process; NULL outside a distributed run
-- device            VARCHAR  device
-- communication_ns  BIGINT   time in which operations communicated
-- hidden_ns         BIGINT   time of these in which a kernel computed
-- exposed_ns        BIGINT   time of these in which no kernel computed
-- hidden            DOUBLE   hidden_ns / communication_ns, 0 to 1
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
        sum(CASE WHEN communicates THEN span_ns ELSE 0 END)::BIGINT AS communication_ns,
        sum(CASE WHEN communicates AND computes THEN span_ns ELSE 0 END)::BIGINT AS hidden_ns
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
    s.communication_ns,
    s.hidden_ns,
    s.communication_ns - s.hidden_ns AS exposed_ns,
    round(s.hidden_ns / s.communication_ns, 4) AS hidden,
    s.pid,
    s.host
FROM summed s
JOIN ranks r ON r.host = s.host AND r.pid = s.pid AND r.device IS NOT DISTINCT FROM s.device
WHERE s.communication_ns > 0
ORDER BY r.rank, s.pid, s.device
