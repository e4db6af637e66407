-- Threads that recorded.
--
-- thread_id   INTEGER  number in this recording; column thread_id of kymo_scan
-- pid         INTEGER  process ID
-- tid         INTEGER  kernel thread ID
-- thread      VARCHAR  thread name
-- rank        INTEGER  rank of the process; NULL outside a distributed run
-- started_ns  BIGINT   time of its first row
-- ended_ns    BIGINT   end of the thread; NULL while it runs, or if it ended with the process
-- host        VARCHAR  host name
SELECT
    thread_id,
    pid,
    tid,
    thread,
    rank,
    started_ns,
    ended_ns,
    host
FROM kymo_meta('threads')
