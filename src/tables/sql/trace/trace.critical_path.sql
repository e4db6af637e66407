-- Critical path of the steps: what the end of the run waited for, moment by moment.
--
-- step          BIGINT   step that ran or launched it; 0 in a recording without steps
-- rank          INTEGER  rank of the process; NULL outside a distributed run
-- position      BIGINT   order on the path of the step, from 1
-- kind          VARCHAR  host, launch, kernel, copy, wait or collective
-- name          VARCHAR  operator or zone of the host, call of the runtime, operation of a device;
--                        of a wait: the call that waits, between operations (of one queue), between
--                        queues, or launched, not started: for a reason that is not recorded
-- start_ns      BIGINT   start, in ns since the recording began
-- duration_ns   BIGINT   time on the path
-- share         DOUBLE   share of the step's path, 0 to 1
-- would_win_ns  BIGINT   time by which the run would end earlier if this took no time: at most
--                        duration_ns, less if another path is nearly as long
-- all_win_ns    BIGINT   the same if all rows of the path with this kind and name took no time;
--                        NULL except for the costliest 16
-- function      VARCHAR  Python function around it, of own code if there is one
-- file          VARCHAR  file of that function
-- line          INTEGER  line in that file
-- module        VARCHAR  torch module around it, or the module whose backward it is
-- zone          VARCHAR  operator around it, or host zone that queued it
-- queue         VARCHAR  queue or stream; NULL on the host
-- path          INTEGER  number of the path; ranks that no collective connects have one each
-- pid           INTEGER  process ID
-- tid           INTEGER  kernel thread ID of the thread, or of the one that launched it
-- host          VARCHAR  host name
--
-- The path is that of the whole run, cut at the steps. It leaves an operation of a device for its
-- launch, for the operation before it on its queue, or for one of another queue that has just
-- ended; the return of a wait for the last operation that ended during it; the end of a collective
-- for the arrival of the last rank; a thread for another one that it waited for.
SELECT
    step,
    rank,
    row_number() OVER (PARTITION BY path, step ORDER BY start_ns, duration_ns) AS position,
    kind,
    name,
    start_ns,
    duration_ns,
    round(duration_ns / sum(duration_ns) OVER (PARTITION BY path, step), 4) AS share,
    would_win_ns,
    all_win_ns,
    function,
    file,
    line,
    module,
    zone,
    queue,
    dense_rank() OVER (ORDER BY path)::INTEGER AS path,
    pid,
    tid,
    host
FROM kymo_critical_path()
ORDER BY path, start_ns, duration_ns
