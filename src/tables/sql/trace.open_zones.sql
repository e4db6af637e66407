-- Zones that are open now, or were when their process ended.
--
-- source    VARCHAR  who marked it: c, python, line, torch, device
-- name      VARCHAR  the zone's name; NULL where the table of names was full
-- file      VARCHAR  where it is in the code; of a torch module inside of another, its class
-- line      INTEGER  the line in that file
-- start_ns  BIGINT   when it began, in ns since the recording began
-- age_ns    BIGINT   how long it has been open, or was when its process ended
-- depth     INTEGER  how many zones of its thread it is inside of
-- pid       INTEGER  the process
-- tid       INTEGER  the thread's number in the kernel
-- thread    VARCHAR  the thread's name
-- rank      INTEGER  rank of the process; NULL outside of a distributed run
-- step      BIGINT   the step that ran then; 0 before the first
-- instance  INTEGER  number of the timer or collector; NULL for others
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
    instance
FROM kymo_meta('open_zones')
