-- Python stacks over time.
--
-- ts_ns      BIGINT     time, in ns since the recording began
-- pid        INTEGER    process ID
-- tid        INTEGER    kernel thread ID
-- thread     VARCHAR    thread name
-- stack      VARCHAR[]  frames as function (file:line), innermost first
-- state      VARCHAR    state of the thread in the kernel: R running, S sleeping, D uninterruptible
--                       sleep, T stopped
-- gil        BOOLEAN    true if the thread held the GIL
-- cause      VARCHAR    reason for the sample: period, slow zone: NAME, slow step: NUMBER or mark
-- place      VARCHAR    innermost frame of the program's own code: not the standard library, not an
--                       installed package; NULL if there is none
-- weight_ns  BIGINT     time that the sample stands for: that since the sample before it; 0 for a
--                       sample that is not periodic, NULL in recordings of an older version
-- activity   VARCHAR    what the thread did: running, ready (it had no core), sleep, disk, lock,
--                       GIL, socket, pipe, child, device, collective, stopped, or wait for others;
--                       NULL in recordings of an older version
-- waits_for  VARCHAR    peer of the socket, path of the file, name of the child or kind of the
--                       lock; NULL if not known. In a distributed run, a backward pass that waits
--                       waits for other ranks: its activity is collective
-- rank       INTEGER    rank of the process; NULL outside a distributed run
-- host       VARCHAR    host name
SELECT
    ts_ns,
    pid,
    tid,
    thread,
    stack,
    state,
    gil,
    cause,
    place,
    weight_ns,
    CASE
        WHEN waits_for = 'the backward pass' AND rank IS NOT NULL THEN 'collective'
        ELSE activity
    END AS activity,
    waits_for,
    rank,
    host
FROM kymo_samples()
