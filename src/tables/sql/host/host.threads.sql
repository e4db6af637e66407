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
-- activity              VARCHAR  what the thread did at that moment, as in python.samples, without
--                                the help of Python's functions; NULL if not recorded
-- waits_for             VARCHAR  peer of the socket, path of the file or name of the child; NULL if
--                                not known
-- rank                  INTEGER  rank of the process; NULL outside a distributed run
-- host                  VARCHAR  host name
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
    TRY_CAST(run_delay_ns AS BIGINT) AS run_delay_ns,
    activity,
    waits_for,
    target_rank AS rank,
    host
FROM kymo_scan('host.threads')
