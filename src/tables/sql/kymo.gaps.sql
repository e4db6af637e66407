-- Spans in which calls went untraced, and why.
--
-- start_ns     BIGINT   when it began, in ns since the recording began
-- duration_ns  BIGINT   how long it lasted
-- cause        VARCHAR  why nothing was seen: deep recursion, another tool's hook, …
-- events       BIGINT   how often that came about in this span
-- pid          INTEGER  the process
-- tid          INTEGER  the thread's number in the kernel
-- thread       VARCHAR  the thread's name
SELECT
    start_ns,
    duration_ns,
    cause,
    TRY_CAST(events AS BIGINT) AS events,
    pid,
    tid,
    thread
FROM kymo_scan('kymo.gaps')
