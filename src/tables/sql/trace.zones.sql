-- Zones that have ended, one row each.
--
-- source       VARCHAR  who marked it: c, python, line, torch, device
-- name         VARCHAR  the zone's name; NULL where the table of names was full
-- file         VARCHAR  where it is in the code; of a torch module inside of another, its class
-- line         INTEGER  the line in that file
-- start_ns     BIGINT   when it began, in ns since the recording began
-- duration_ns  BIGINT   how long it took
-- depth        INTEGER  how many zones of its thread it is inside of
-- pid          INTEGER  the process
-- tid          INTEGER  the thread's number in the kernel
-- thread       VARCHAR  the thread's name
-- rank         INTEGER  rank of the process; NULL outside of a distributed run
-- step         BIGINT   the step that ran then; 0 before the first
-- instance     INTEGER  number of the timer or collector; NULL for others
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
    name_instance AS instance
FROM kymo_scan('trace.zones')
