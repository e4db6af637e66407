-- Number of operations launched and not begun, whenever it changes.
--
-- ts_ns   BIGINT   time, in ns since the recording began
-- depth   BIGINT   operations of the queue that are launched and have not begun, afterwards
-- change  INTEGER  1: one was launched; -1: one began
-- name    VARCHAR  operation name
-- call    VARCHAR  function that launched it; NULL if not known
-- device  VARCHAR  device
-- queue   VARCHAR  queue or stream
-- core    INTEGER  core, or number of the queue in order of creation
-- rank    INTEGER  rank of the process; NULL outside a distributed run
-- pid     INTEGER  process ID
-- host    VARCHAR  host name; empty if not known
--
-- At one moment launches come first. Operations without a known launch are not counted.
WITH
{include device_classes},
changes AS (
    SELECT queued_ns AS ts_ns, 1 AS change, name, call, device, queue, core, rank, pid, host
    FROM classed
    WHERE queued_ns IS NOT NULL
    UNION ALL
    SELECT start_ns, -1, name, call, device, queue, core, rank, pid, host
    FROM classed
    WHERE queued_ns IS NOT NULL
)
SELECT
    ts_ns,
    (sum(change) OVER (
        PARTITION BY host, pid, device, queue
        ORDER BY ts_ns, change DESC
        ROWS UNBOUNDED PRECEDING
    ))::BIGINT AS depth,
    change,
    name,
    call,
    device,
    queue,
    core,
    rank,
    pid,
    host
FROM changes
ORDER BY ts_ns, change DESC
