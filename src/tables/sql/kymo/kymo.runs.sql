-- The recorded run: one row.
--
-- started_unix_ns  BIGINT   start of the recording, in ns since 1970; all other *_ns columns count
--                           from it
-- program          VARCHAR  short name of the program
-- command          VARCHAR  command line
-- host             VARCHAR  host name
-- cwd              VARCHAR  working directory
-- pid              INTEGER  process ID
-- state            VARCHAR  live, ended, killed, detached (kymo attach ended while the program went
--                           on), lost (gone, with no exit status seen) or unknown (not ended, and
--                           of another host, which alone knows whether it runs)
-- exit_code        INTEGER  exit status; NULL if there is none or it is not known
-- signal           VARCHAR  signal that killed the program, for example SIGKILL; NULL if none
-- duration_ns      BIGINT   time from the start to the last recorded moment
-- kept             VARCHAR  all, or flight: the last rows of each stream
-- version          VARCHAR  version of kymo that recorded
-- clock            VARCHAR  tsc, cntvct or monotonic
-- clock_error_ns   BIGINT   stated error of times
-- supervised       BOOLEAN  true if kymo run or kymo attach recorded it
-- not_recorded     BIGINT   number of child processes that were seen and did not record
-- path             VARCHAR  path that the recording was read from
-- job              VARCHAR  id of the job that the run is a part of; NULL if none
-- started_ns       BIGINT   start of the run on the time axis of the recording: 0, except in a job
-- age_ns           BIGINT   how old its last data is, by the wall clocks of both hosts; NULL if it
--                           has ended
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
    path,
    job,
    started_ns,
    age_ns
FROM kymo_meta('runs')
