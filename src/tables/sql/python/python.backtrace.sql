-- Python stack of every thread and suspended asyncio task: current, or the last one taken.
--
-- pid         INTEGER  process ID
-- tid         INTEGER  kernel thread ID
-- thread      VARCHAR  thread name
-- func        VARCHAR  function
-- file        VARCHAR  file of the function
-- lineno      INTEGER  current line
-- depth       INTEGER  position in the stack; 0 is innermost
-- frame_type  VARCHAR  Python or Native
-- age_ns      BIGINT   age of the stack; for a program that has ended, its age at the end
-- task        VARCHAR  name of the suspended asyncio task, which is on no thread's stack; NULL for
--                      the stack of a thread
-- rank        INTEGER  rank of the process; NULL outside a distributed run
-- host        VARCHAR  host name
SELECT
    pid,
    tid,
    thread,
    func,
    file,
    lineno,
    depth,
    frame_type,
    age_ns,
    task,
    rank,
    host
FROM kymo_meta('backtrace')
ORDER BY pid, tid, task NULLS FIRST, depth
