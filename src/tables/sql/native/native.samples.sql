-- Native stacks of threads: on a CPU, sampled by the kernel, and waiting, for threads without
-- Python; C, C++, Rust, and Python where its frames are known.
--
-- ts_ns      BIGINT     time, in ns since the recording began
-- pid        INTEGER    process ID
-- tid        INTEGER    kernel thread ID
-- thread     VARCHAR    thread name
-- stack      VARCHAR[]  frames as function (file:line), or function (library) without debug
--                       information, innermost first; inlined functions are frames
-- place      VARCHAR    innermost frame of the program's own code: not of a library of the system
--                       or of Python, not an installed package; NULL if there is none
-- weight_ns  BIGINT     time that the sample stands for, on a CPU or waiting
-- complete   BOOLEAN    true if the stack reaches the function where the thread began
-- python     VARCHAR    merged: Python frames are in place of the interpreter's; apart: the
--                       interpreter ran, but its frames at that moment are not known; NULL: no
--                       Python
-- kernel     BOOLEAN    true if the thread was in a system call, made by the innermost frame
-- activity   VARCHAR    what the thread did: running, sleep, disk, lock, socket, pipe, child,
--                       device, or wait for others
-- waits_for  VARCHAR    peer of the socket, path of the file, name of the child or kind of the
--                       lock; NULL if not known
-- holder     INTEGER    kernel thread ID of the thread that holds the mutex; NULL if not known
-- rank       INTEGER    rank of the process; NULL outside a distributed run
-- host       VARCHAR    host name
SELECT
    ts_ns,
    pid,
    tid,
    thread,
    stack,
    place,
    weight_ns,
    (flags & {SCHEMA_NATIVE_COMPLETE}) > 0 AS complete,
    CASE
        WHEN (flags & {SCHEMA_NATIVE_MERGED}) > 0 THEN 'merged'
        WHEN (flags & {SCHEMA_NATIVE_APART}) > 0 THEN 'apart'
    END AS python,
    (flags & {SCHEMA_NATIVE_KERNEL}) > 0 AS kernel,
    activity,
    waits_for,
    holder,
    rank,
    host
FROM kymo_native_samples()
