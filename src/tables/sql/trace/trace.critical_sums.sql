-- Critical path of the run by kind, name and place.
--
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- kind         VARCHAR  host, launch, kernel, copy, wait or collective
-- name         VARCHAR  as in trace.critical_path
-- duration_ns  BIGINT   time on the path
-- count        BIGINT   number of rows of trace.critical_path
-- all_win_ns   BIGINT   time by which the run would end earlier if all rows of the path with this
--                       kind and name took no time; NULL except for the costliest 16
-- function     VARCHAR  Python function around it, of own code if there is one
-- file         VARCHAR  file of that function
-- line         INTEGER  line in that file
-- module       VARCHAR  torch module around it, or the module whose backward it is
-- zone         VARCHAR  operator around it, or host zone that queued it
-- queue        VARCHAR  queue or stream; NULL on the host
-- path         INTEGER  number of the path; ranks that no collective connects have one each
-- pid          INTEGER  process ID
-- tid          INTEGER  kernel thread ID of the thread, or of the one that launched it
-- host         VARCHAR  host name
--
-- The sums of trace.critical_path, which may have millions of rows.
SELECT
    rank,
    kind,
    name,
    duration_ns,
    step AS count,
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
FROM kymo_critical_sums()
ORDER BY duration_ns DESC
