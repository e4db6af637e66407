-- CPU of each running thread, over time; a thread that becomes idle has one row of 0 %, then none.
--
-- ts_ns                 BIGINT   time, in ns since the recording began
-- pid                   INTEGER  process ID
-- tid                   INTEGER  kernel thread ID
-- thread                VARCHAR  thread name in the kernel
-- cpu_pct               DOUBLE   CPU time per wall time since the previous reading; 100 is one core
-- state                 VARCHAR  running, sleeping, blocked (waiting for I/O), stopped, traced or
--                                zombie
-- cpu_ns                BIGINT   CPU time, since the thread began
-- voluntary_switches    BIGINT   context switches because the thread waited, since it began
-- involuntary_switches  BIGINT   context switches forced by the kernel, since the thread began
-- run_delay_ns          BIGINT   time in which it was ready to run but had no core, since it began
SELECT
    ts_ns,
    target_pid AS pid,
    target_tid AS tid,
    target_thread AS thread,
    round(cpu_pct, 1) AS cpu_pct,
    state,
    TRY_CAST(cpu_ns AS BIGINT) AS cpu_ns,
    TRY_CAST(voluntary_switches AS BIGINT) AS voluntary_switches,
    TRY_CAST(involuntary_switches AS BIGINT) AS involuntary_switches,
    TRY_CAST(run_delay_ns AS BIGINT) AS run_delay_ns
FROM kymo_scan('host.threads')
