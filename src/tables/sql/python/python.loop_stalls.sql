-- Callbacks that blocked an event loop for longer than 10 ms, and what blocked it.
--
-- ts_ns        BIGINT   time at which the callback began, in ns since the recording began
-- duration_ns  BIGINT   its duration; no other callback of the loop could run
-- function     VARCHAR  innermost function of the program's own code in most samples of that time;
--                       without a sample, the coroutine or the function of the callback
-- file         VARCHAR  its file
-- line         INTEGER  the line in most samples; without a sample, the function's first line
-- samples      BIGINT   samples of the thread in that time
-- starved_ns   BIGINT   part of it in which the thread was ready but had no core, by its samples;
--                       NULL without a sample
-- ready        INTEGER  callbacks that waited for its end; NULL if not known
-- coroutine    VARCHAR  coroutine of the task, or the function of the callback; NULL if not known
-- task         VARCHAR  name of the task; NULL if the program gave none
-- loop         VARCHAR  asyncio or uvloop
-- pid          INTEGER  process ID
-- tid          INTEGER  kernel thread ID
-- thread       VARCHAR  thread name
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- host         VARCHAR  host name
--
-- A callback is a part of a task between two awaits, or a function called by the loop. asyncio is
-- recorded under kymo run on Python 3.10 and later, uvloop as well if it is imported there.
WITH stalls AS (
    SELECT
        row_number() OVER () AS stall,
        *
    FROM kymo_scan('python.loop_stalls')
), sampled AS (
    SELECT
        host,
        pid,
        tid,
        ts_ns,
        coalesce(activity = 'ready', false) AS starved,
        coalesce(place, stack[1]) AS place
    FROM kymo_samples()
    WHERE len(stack) > 0 AND EXISTS (FROM stalls)
), places AS (
    SELECT
        s.stall,
        p.place,
        count(*) AS n,
        count(*) FILTER (starved) AS starved
    FROM stalls s
    JOIN sampled p
        ON p.host = s.host AND p.pid = s.pid
        AND p.tid = s.tid
        AND p.ts_ns BETWEEN s.ts_ns AND s.ts_ns + s.duration_ns
    GROUP BY ALL
), found AS (
    SELECT
        stall,
        arg_max(place, n) AS place,
        sum(n) AS n,
        sum(starved) AS starved
    FROM places
    GROUP BY stall
)
SELECT
    s.ts_ns,
    s.duration_ns,
    coalesce(regexp_extract(f.place, '^(.*) \((.*):([0-9]+)\)$', 1), s.coroutine) AS function,
    coalesce(regexp_extract(f.place, '^(.*) \((.*):([0-9]+)\)$', 2), s.coroutine_file) AS file,
    coalesce(
        TRY_CAST(regexp_extract(f.place, '^(.*) \((.*):([0-9]+)\)$', 3) AS INTEGER),
        s.coroutine_line::INTEGER
    ) AS line,
    coalesce(f.n, 0)::BIGINT AS samples,
    (s.duration_ns * (f.starved / f.n))::BIGINT AS starved_ns,
    CASE WHEN s.ready >= 0 THEN s.ready END AS ready,
    s.coroutine,
    s.task,
    CASE s.kind
        WHEN {SCHEMA_LOOP_ASYNCIO} THEN 'asyncio'
        WHEN {SCHEMA_LOOP_UVLOOP} THEN 'uvloop'
    END AS loop,
    s.pid,
    s.tid,
    s.thread,
    s.rank,
    s.host
FROM stalls s
LEFT JOIN found f ON f.stall = s.stall
