-- The Python stack of every thread, now or as last taken, and of asyncio's tasks.
--
-- pid         INTEGER  the process
-- tid         INTEGER  the thread's number in the kernel
-- thread      VARCHAR  the thread's name
-- func        VARCHAR  the function
-- file        VARCHAR  its file
-- lineno      INTEGER  the line that runs
-- depth       INTEGER  0 is the innermost frame
-- frame_type  VARCHAR  Python or Native
-- age_ns      BIGINT   how long ago the stack was taken; of a program that has ended, how long
--         before its end
-- task        VARCHAR  asyncio's task that is suspended there, on no thread's stack; NULL: the
--         stack of the thread
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
    task
FROM (SELECT * FROM kymo_meta('backtrace') ORDER BY pid, tid, task NULLS FIRST, depth)
