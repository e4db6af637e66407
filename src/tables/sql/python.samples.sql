-- Python stacks over time.
--
-- ts_ns   BIGINT     when, in ns since the recording began
-- pid     INTEGER    the process
-- tid     INTEGER    the thread's number in the kernel
-- thread  VARCHAR    the thread's name
-- stack   VARCHAR[]  frames as function (file:line), the innermost first
-- state   VARCHAR    what the kernel said of the thread: R runs, S waits, D, T
-- gil     BOOLEAN    whether it held the GIL
-- cause   VARCHAR    why it was taken: period, slow zone: NAME, slow step: NUMBER, mark
SELECT
    ts_ns,
    pid,
    tid,
    thread,
    stack,
    state,
    gil,
    cause
FROM kymo_samples()
