-- Zones that have ended, one row each.
--
-- source       VARCHAR  recorder of the zone: c, python, line, torch, device, itt, nvtx, op (an
--                       operator) or xla; of an imported trace also mark (a user's region)
-- name         VARCHAR  zone name; NULL if the name table was full
-- file         VARCHAR  source file; class name for a torch module inside another one;
--                       domain for itt and nvtx
-- line         INTEGER  line in that file
-- start_ns     BIGINT   start, in ns since the recording began
-- duration_ns  BIGINT   duration
-- depth        INTEGER  nesting depth; 0 is outermost
-- pid          INTEGER  process ID
-- tid          INTEGER  kernel thread ID
-- thread       VARCHAR  thread name
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- step         BIGINT   current step; 0 before the first
-- instance     INTEGER  number of the timer or collector; NULL for other zones
-- host         VARCHAR  host name
SELECT
    name_source AS source,
    name,
    name_file AS file,
    name_line AS line,
    start_ns,
    duration_ns,
    depth,
    pid,
    tid,
    thread,
    rank,
    step,
    name_instance AS instance,
    host
FROM kymo_scan('trace.zones')
