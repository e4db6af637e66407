-- The threads that recorded.
--
-- thread_id   INTEGER  number in this recording; kymo_scan has it as thread_id
-- pid         INTEGER  the process
-- tid         INTEGER  the thread's number in the kernel
-- thread      VARCHAR  the thread's name
-- rank        INTEGER  rank of the process; NULL outside of a distributed run
-- started_ns  BIGINT   its first row
-- ended_ns    BIGINT   when it ended; NULL while it runs, or where it died with the process
SELECT
    thread_id,
    pid,
    tid,
    thread,
    rank,
    started_ns,
    ended_ns
FROM kymo_meta('threads')
