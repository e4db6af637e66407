-- CPU of each thread that ran, over time; one that rests has a row of 0 % and then none.
--
-- ts_ns                 BIGINT   when, in ns since the recording began
-- pid                   INTEGER  the process
-- tid                   INTEGER  the thread's number in the kernel
-- thread                VARCHAR  the thread's name in the kernel
-- cpu_pct               DOUBLE   CPU time by wall time since the look before; 100 is one core
-- state                 VARCHAR  running, sleeping, blocked (waits for I/O), stopped, traced,
--         zombie
-- cpu_ns                BIGINT   CPU time since the thread began
-- voluntary_switches    BIGINT   context switches to wait, since the thread began
-- involuntary_switches  BIGINT   context switches forced on it, since the thread began
SELECT
    ts_ns,
    target_pid AS pid,
    target_tid AS tid,
    target_thread AS thread,
    round(cpu_pct, 1) AS cpu_pct,
    state,
    TRY_CAST(cpu_ns AS BIGINT) AS cpu_ns,
    TRY_CAST(voluntary_switches AS BIGINT) AS voluntary_switches,
    TRY_CAST(involuntary_switches AS BIGINT) AS involuntary_switches
FROM kymo_scan('host.threads')
