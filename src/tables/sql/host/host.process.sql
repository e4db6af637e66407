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
-- peak_bytes            BIGINT   highest resident memory so far; NULL if unknown
-- cpu_ns                BIGINT   CPU time of its threads, since the process began
-- children_cpu_ns       BIGINT   CPU time of its children that have ended and were waited for
-- run_delay_ns          BIGINT   time in which its threads were ready to run but had no core
-- family_peak_bytes     BIGINT   highest peak of it or of a child that it waited for; in the last
--                                row of the program, else NULL
-- rank                  INTEGER  rank of the process; NULL outside a distributed run
-- host                  VARCHAR  host name
SELECT
    ts_ns,
    target_pid AS pid,
    round(cpu_pct, 1) AS cpu_pct,
    TRY_CAST(nullif(rss_bytes, 0) AS BIGINT) AS rss_bytes,
    TRY_CAST(vms_bytes AS BIGINT) AS vms_bytes,
    threads,
    TRY_CAST(minor_faults AS BIGINT) AS minor_faults,
    TRY_CAST(major_faults AS BIGINT) AS major_faults,
    TRY_CAST(voluntary_switches AS BIGINT) AS voluntary_switches,
    TRY_CAST(involuntary_switches AS BIGINT) AS involuntary_switches,
    TRY_CAST(nullif(peak_bytes, 0) AS BIGINT) AS peak_bytes,
    TRY_CAST(cpu_ns AS BIGINT) AS cpu_ns,
    TRY_CAST(children_cpu_ns AS BIGINT) AS children_cpu_ns,
    TRY_CAST(run_delay_ns AS BIGINT) AS run_delay_ns,
    TRY_CAST(nullif(family_peak_bytes, 0) AS BIGINT) AS family_peak_bytes,
    target_rank AS rank,
    host
FROM kymo_scan('host.process')
