-- Processes of the run.
--
-- pid             INTEGER  process ID
-- ppid            INTEGER  process ID of the parent
-- program         VARCHAR  short name of the program
-- command         VARCHAR  command line
-- rank            INTEGER  rank of the process; NULL outside a distributed run
-- ranks           INTEGER  number of ranks; NULL outside a distributed run
-- role            VARCHAR  target (the recorded program), collector (the kymo that watches it) or
--                          command (a kymo that changed a setting)
-- state           VARCHAR  live, ended, killed or lost (gone, with no exit status seen)
-- exit_code       INTEGER  exit status; NULL if there is none or it is not known
-- signal          VARCHAR  signal that killed the process, for example SIGKILL; NULL if none
-- started_ns      BIGINT   time at which it began to record
-- ended_ns        BIGINT   last recorded moment
-- clock           VARCHAR  tsc, cntvct or monotonic
-- clock_error_ns  BIGINT   stated error of its times
-- names_full      BIGINT   names rejected because the name table was full
-- threads_full    BIGINT   threads rejected because the thread table was full
-- totals_full     BIGINT   zones missing from the totals because there was no room for their name
-- host            VARCHAR  host name; in a job NAME#2 for a second host of that name that has a
--                          process with the same pid
-- local_rank      INTEGER  rank among the processes of its host; NULL if not known
-- attempt         INTEGER  number of restarts of the job before this process; NULL if not known
SELECT
    pid,
    ppid,
    program,
    command,
    rank,
    ranks,
    role,
    state,
    exit_code,
    signal,
    started_ns,
    ended_ns,
    clock,
    clock_error_ns,
    names_full,
    threads_full,
    totals_full,
    host,
    local_rank,
    attempt
FROM kymo_meta('processes')
