-- The recorded run: one row.
--
-- started_unix_ns  BIGINT   when the recording began, in ns since 1970; all other *_ns count from
--         it
-- program          VARCHAR  the program's short name
-- command          VARCHAR  its command line
-- host             VARCHAR  the machine
-- cwd              VARCHAR  its working directory
-- pid              INTEGER  its process
-- state            VARCHAR  live, ended, killed, detached: kymo attach ended and the program ran
--         on, or lost: gone, and nobody saw how
-- exit_code        INTEGER  its exit status; NULL where it has none or it is not known
-- signal           VARCHAR  the signal that killed it, as SIGKILL
-- duration_ns      BIGINT   from the beginning to the last moment known of
-- kept             VARCHAR  all, or flight: the last rows of each stream
-- version          VARCHAR  of kymo, when it was recorded
-- clock            VARCHAR  tsc, cntvct or monotonic
-- clock_error_ns   BIGINT   the stated error of times
-- supervised       BOOLEAN  whether kymo run or kymo attach made it
-- not_recorded     BIGINT   children that were seen and did not record
-- path             VARCHAR  where it was read from
SELECT
    started_unix_ns,
    program,
    command,
    host,
    cwd,
    pid,
    state,
    exit_code,
    signal,
    duration_ns,
    kept,
    version,
    clock,
    clock_error_ns,
    supervised,
    not_recorded,
    path
FROM kymo_meta('runs')
