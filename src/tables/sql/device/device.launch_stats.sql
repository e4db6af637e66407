-- Calls that launched device operations: their duration, that of the operation, the delay between.
--
-- rank          INTEGER  rank of the process; NULL outside a distributed run
-- call          VARCHAR  function of the runtime, for example cudaLaunchKernel; NULL if not known
-- launches      BIGINT   number of operations launched
-- call_ns       BIGINT   total duration of the calls; NULL if not known
-- device_ns     BIGINT   total duration of the operations
-- delay_ns      BIGINT   total time from the end of the call to the start of the operation; 0 for
--                        one that starts during the call
-- max_delay_ns  BIGINT   longest such time
-- short         BIGINT   operations that were shorter than their call
-- slow_calls    BIGINT   calls longer than 50 µs
-- late          BIGINT   operations that started more than 100 µs after their call
-- p50_call_ns   BIGINT   median duration of a call
-- device        VARCHAR  device
-- pid           INTEGER  process ID
-- host          VARCHAR  host name; empty if not known
WITH
{include device_classes},
launched AS (
    SELECT
        *,
        end_ns - start_ns AS device_ns,
        nullif(call_ns, 0) AS known_ns,
        greatest(start_ns - queued_ns - coalesce(call_ns, 0), 0) AS delay_ns
    FROM classed
    WHERE queued_ns IS NOT NULL
)
SELECT
    any_value(rank) AS rank,
    call,
    count(*) AS launches,
    sum(known_ns)::BIGINT AS call_ns,
    sum(device_ns)::BIGINT AS device_ns,
    sum(delay_ns)::BIGINT AS delay_ns,
    max(delay_ns) AS max_delay_ns,
    count(*) FILTER (device_ns < known_ns) AS short,
    count(*) FILTER (known_ns > 50000) AS slow_calls,
    count(*) FILTER (delay_ns > 100000) AS late,
    quantile_disc(known_ns, 0.5)::BIGINT AS p50_call_ns,
    device,
    pid,
    host
FROM launched
GROUP BY host, pid, device, call
ORDER BY rank, pid, launches DESC
