-- What the control groups of the program may use, what they use and how they wait.
--
-- ts_ns               BIGINT   when, in ns since the recording began
-- pid                 INTEGER  a process that is in the group
-- path                VARCHAR  the group
-- memory_bytes        BIGINT   memory that the group uses, its file cache included
-- memory_limit_bytes  BIGINT   the smallest limit of the group and those above it; NULL: none
-- cpu_limit           DOUBLE   cores that it may use, likewise; NULL: no limit
-- throttled_ns        BIGINT   time that it was held back for its CPU limit, since it began
-- throttled_count     BIGINT   how often
-- cpu_some_pct        DOUBLE   share of time in which some of it waited for a core; of the host
--         where groups do not tell
-- cpu_full_pct        DOUBLE   share of time in which all of it waited for a core
-- memory_some_pct     DOUBLE   share of time in which some of it waited for memory
-- memory_full_pct     DOUBLE   share of time in which all of it waited for memory
-- io_some_pct         DOUBLE   share of time in which some of it waited for I/O
-- io_full_pct         DOUBLE   share of time in which all of it waited for I/O
SELECT
    ts_ns,
    target_pid AS pid,
    path,
    TRY_CAST(memory_bytes AS BIGINT) AS memory_bytes,
    TRY_CAST(nullif(memory_limit_bytes, 0) AS BIGINT) AS memory_limit_bytes,
    nullif(cpu_limit, 0) AS cpu_limit,
    TRY_CAST(throttled_ns AS BIGINT) AS throttled_ns,
    TRY_CAST(throttled_count AS BIGINT) AS throttled_count,
    CASE WHEN cpu_some_pct >= 0 THEN round(cpu_some_pct, 1) END AS cpu_some_pct,
    CASE WHEN cpu_full_pct >= 0 THEN round(cpu_full_pct, 1) END AS cpu_full_pct,
    CASE WHEN memory_some_pct >= 0 THEN round(memory_some_pct, 1) END AS memory_some_pct,
    CASE WHEN memory_full_pct >= 0 THEN round(memory_full_pct, 1) END AS memory_full_pct,
    CASE WHEN io_some_pct >= 0 THEN round(io_some_pct, 1) END AS io_some_pct,
    CASE WHEN io_full_pct >= 0 THEN round(io_full_pct, 1) END AS io_full_pct
FROM kymo_scan('host.cgroup')
