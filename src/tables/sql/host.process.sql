-- CPU, memory, faults and switches of each process, over time.
--
-- ts_ns                 BIGINT   when, in ns since the recording began
-- pid                   INTEGER  the process
-- cpu_pct               DOUBLE   CPU time by wall time since the row before; 100 is one core
-- rss_bytes             BIGINT   memory that is resident
-- vms_bytes             BIGINT   memory that is mapped
-- threads               BIGINT   its threads
-- minor_faults          BIGINT   page faults without I/O, since the process began
-- major_faults          BIGINT   page faults with I/O, since the process began
-- voluntary_switches    BIGINT   context switches to wait, since the process began
-- involuntary_switches  BIGINT   context switches forced on it, since the process began
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
