-- The processes of the run.
--
-- pid             INTEGER  the process
-- ppid            INTEGER  its parent
-- program         VARCHAR  the program's short name
-- command         VARCHAR  its command line
-- rank            INTEGER  rank of the process; NULL outside of a distributed run
-- ranks           INTEGER  how many ranks there are
-- role            VARCHAR  target; collector: kymo, which watches; command: kymo, which changed a
--         setting
-- state           VARCHAR  live, ended, killed, or lost: gone, and nobody saw how
-- exit_code       INTEGER  its exit status; NULL where it has none or it is not known
-- signal          VARCHAR  the signal that killed it, as SIGKILL
-- started_ns      BIGINT   when it began to record
-- ended_ns        BIGINT   the last moment known of
-- clock           VARCHAR  tsc, cntvct or monotonic
-- clock_error_ns  BIGINT   the stated error of its times
-- names_full      BIGINT   names that no room was left for
-- threads_full    BIGINT   threads that no room was left for
-- totals_full     BIGINT   zones that are in no total, since no room was left for their name
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
    totals_full
FROM kymo_meta('processes')
