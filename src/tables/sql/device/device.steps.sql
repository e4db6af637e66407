-- Time of each rank's devices in each step: computation, communication or copies alone, idle.
--
-- step              BIGINT   step number
-- rank              INTEGER  rank of the process; NULL outside a distributed run
-- device            VARCHAR  device
-- start_ns          BIGINT   start of the step, in ns since the recording began
-- total_ns          BIGINT   duration of the step
-- computation_ns    BIGINT   time in which a kernel computed
-- communication_ns  BIGINT   time in which operations communicated and none computed
-- memory_ns         BIGINT   time in which memory was copied or filled, and nothing else ran
-- idle_ns           BIGINT   time in which nothing ran
-- hidden_ns         BIGINT   time in which operations communicated while a kernel computed
-- pid               INTEGER  process ID
-- host              VARCHAR  host name; empty if not known
--
-- A span counts for the step in which it lies by the host's clock; an operation that runs on after
-- its step counts for both.
WITH
{include device_classes},
steps AS MATERIALIZED (
    SELECT host, pid, rank, step, start_ns, duration_ns
    FROM kymo_scan('trace.steps')
),
places AS (
    SELECT DISTINCT host, pid, device
    FROM classed
),
edges AS (
    SELECT p.host, p.pid, p.device, s.start_ns AS t
    FROM places p
    JOIN steps s ON s.host = p.host AND s.pid = p.pid
    UNION ALL
    SELECT p.host, p.pid, p.device, s.start_ns + s.duration_ns
    FROM places p
    JOIN steps s ON s.host = p.host AND s.pid = p.pid
),
{include device_spans further=edges},
placed AS (
    SELECT s.*, p.step, p.rank, p.start_ns, p.duration_ns
    FROM spans s
    ASOF JOIN steps p ON p.host = s.host AND p.pid = s.pid AND p.start_ns <= s.t
    WHERE s.t < p.start_ns + p.duration_ns
),
summed AS (
    SELECT
        step,
        rank,
        device,
        start_ns,
        duration_ns,
        host,
        pid,
        sum(CASE WHEN computes THEN span_ns ELSE 0 END)::BIGINT AS computation_ns,
        sum(CASE WHEN communicates AND NOT computes THEN span_ns ELSE 0 END)::BIGINT
            AS communication_ns,
        sum(CASE WHEN moves AND NOT computes AND NOT communicates THEN span_ns ELSE 0 END)::BIGINT
            AS memory_ns,
        sum(CASE WHEN computes AND communicates THEN span_ns ELSE 0 END)::BIGINT AS hidden_ns
    FROM placed
    GROUP BY ALL
)
SELECT
    step,
    rank,
    device,
    start_ns,
    duration_ns AS total_ns,
    computation_ns,
    communication_ns,
    memory_ns,
    duration_ns - computation_ns - communication_ns - memory_ns AS idle_ns,
    hidden_ns,
    pid,
    host
FROM summed
ORDER BY step, rank, pid, device
