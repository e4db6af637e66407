-- Zones that are open now, or were open when their process ended.
--
-- source    VARCHAR  recorder of the zone, as in trace.zones
-- name      VARCHAR  zone name; NULL if the name table was full
-- file      VARCHAR  source file; class name for a torch module inside another one;
--                    domain for itt and nvtx
-- line      INTEGER  line in that file
-- start_ns  BIGINT   start, in ns since the recording began
-- age_ns    BIGINT   time from the start to now, or to the end of the process; NULL if that end is
--                    not known
-- depth     INTEGER  nesting depth; 0 is outermost
-- pid       INTEGER  process ID
-- tid       INTEGER  kernel thread ID
-- thread    VARCHAR  thread name
-- rank      INTEGER  rank of the process; NULL outside a distributed run
-- step      BIGINT   current step; 0 before the first
-- instance  INTEGER  number of the timer or collector; NULL for other zones
-- host      VARCHAR  host name
SELECT
    source,
    name,
    file,
    line,
    start_ns,
    age_ns,
    depth,
    pid,
    tid,
    thread,
    rank,
    step,
    instance,
    host
FROM kymo_meta('open_zones')
