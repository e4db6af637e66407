-- CPU, memory, faults and context switches of each process, over time.
--
-- ts_ns                 BIGINT   time, in ns since the recording began
-- pid                   INTEGER  process ID
-- cpu_pct               DOUBLE   CPU time per wall time since the previous row; 100 is one core
-- rss_bytes             BIGINT   resident memory
-- vms_bytes             BIGINT   mapped memory
-- threads               BIGINT   number of threads
-- minor_faults          BIGINT   page faults without I/O, since the process began
-- major_faults          BIGINT   page faults with I/O, since the process began
-- voluntary_switches    BIGINT   context switches because the process waited, since it began
-- involuntary_switches  BIGINT   context switches forced by the kernel, since the process began
SELECT
    ts_ns,
    target_pid AS pid,
    round(cpu_pct, 1) AS cpu_pct,
    TRY_CAST(rss_bytes AS BIGINT) AS rss_bytes,
    TRY_CAST(vms_bytes AS BIGINT) AS vms_bytes,
    threads,
    TRY_CAST(minor_faults AS BIGINT) AS minor_faults,
    TRY_CAST(major_faults AS BIGINT) AS major_faults,
    TRY_CAST(voluntary_switches AS BIGINT) AS voluntary_switches,
    TRY_CAST(involuntary_switches AS BIGINT) AS involuntary_switches
FROM kymo_scan('host.process')
