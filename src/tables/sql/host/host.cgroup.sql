-- Limits, usage and pressure of the program's control groups, over time.
--
-- ts_ns               BIGINT   time, in ns since the recording began
-- pid                 INTEGER  a process in the group
-- path                VARCHAR  path of the group
-- memory_bytes        BIGINT   memory used by the group, including file cache
-- memory_limit_bytes  BIGINT   smallest memory limit of the group and its parents; NULL if there is
--                              none
-- cpu_limit           DOUBLE   smallest CPU limit of the group and its parents, in cores; NULL if
--                              there is none
-- throttled_ns        BIGINT   time throttled by the CPU limit, since the group began
-- throttled_count     BIGINT   number of times throttled, since the group began
-- cpu_some_pct        DOUBLE   share of time in which some tasks waited for a core; of the whole
--                              host if groups do not report it; NULL if not known
-- cpu_full_pct        DOUBLE   share of time in which all tasks waited for a core; NULL if not
--                              known
-- memory_some_pct     DOUBLE   share of time in which some tasks waited for memory; NULL if not
--                              known
-- memory_full_pct     DOUBLE   share of time in which all tasks waited for memory; NULL if not
--                              known
-- io_some_pct         DOUBLE   share of time in which some tasks waited for I/O; NULL if not known
-- io_full_pct         DOUBLE   share of time in which all tasks waited for I/O; NULL if not known
-- oom_kills           BIGINT   number of processes that the kernel killed because the group had no
--                              memory left, since the group began
-- rank                INTEGER  rank of the process; NULL outside a distributed run
-- host                VARCHAR  host name
--
-- Shares below 0 are not known.
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
    CASE WHEN io_full_pct >= 0 THEN round(io_full_pct, 1) END AS io_full_pct,
    TRY_CAST(oom_kills AS BIGINT) AS oom_kills,
    target_rank AS rank,
    host
FROM kymo_scan('host.cgroup')
