-- threshold: 0.20
-- weight: 0.5
-- weight_with_steps: 0.25
-- least_s: 0.3
-- sentence: The program {which} for {share} of the run.
-- evidence: {a} of CPU time in {whole}
-- advice: find what it waits for: I/O, a lock, a device or another process; kymo backtrace shows
--     the last stacks, and while it runs kymo backtrace --why {pid} shows what it waits for
-- tab: metrics
-- query: SELECT activity, waits_for, place, sum(weight_ns)
--     FROM (FROM python.samples UNION ALL BY NAME FROM native.samples) GROUP BY ALL ORDER BY 4 DESC
--
-- The thread that waits longest for one kind of thing, and the function that does. It is bounded by
-- the time in which no process of the program used a core or was ready to: what others compute
-- meanwhile is no wait of the program. A thread that waits for a child, a queue or another thread
-- waits for what that one does, so that its wait comes first, and so does one that waits for the
-- pipe of its worker processes (multiprocessing); so does the first process before its
-- children, any other wait before the sleep of a thread beside the main one, and a function
-- of own code before a program without any that it has started. Locks and storage
-- have verdicts of their own. A thread that has not moved has few samples, each of a long time: it
-- counts once for each 100 ms. A process without Python has native samples of waits; a thread
-- without these has the activities of host.threads, each until its next row, and no function,
-- except the one that the collector has found where nothing moved for two seconds.
WITH w AS (
    SELECT
        *,
        coalesce(lead(ts_ns) OVER t, {run_ns}) - ts_ns AS until_next,
        coalesce(lead(cpu_pct) OVER t, 0) / 100 AS ran
    FROM host.threads
    WINDOW t AS (PARTITION BY host, pid, tid ORDER BY ts_ns)
), n AS (
    SELECT host, pid, tid, doing, target, place, weight, time_ns
    FROM {include native_threads}
    ANTI JOIN (SELECT DISTINCT host, pid FROM python.samples) USING (host, pid)
), a AS (
    SELECT
        host,
        pid,
        tid,
        doing,
        CASE
            WHEN doing = 'lock'
                AND regexp_matches(
                    array_to_string(stack, ';'),
                    '(^|;)Thread\.start \([^;]*/threading\.py:'
                )
                THEN 'a thread to start'
            ELSE target
        END AS target,
        place,
        weight,
        greatest(time_ns / 1e8, 1) AS points,
        true AS python
    FROM {include weighted_samples}
    WHERE time_ns > 0
    UNION ALL
    SELECT
        host,
        pid,
        tid,
        doing,
        target,
        place,
        weight,
        greatest(time_ns / 1e8, 1),
        (SELECT count(*) FROM python.samples) = 0
            AND (place IS NOT NULL OR (host, pid) IN (SELECT (host, pid) FROM kymo.runs))
    FROM n
    UNION ALL
    SELECT
        host,
        pid,
        tid,
        activity,
        coalesce(waits_for, ''),
        NULL,
        greatest(until_next * (1 - ran), 0),
        greatest(until_next / 1e8, 0),
        (SELECT count(*) FROM python.samples) = 0
    FROM w
    ANTI JOIN (SELECT DISTINCT host, pid FROM python.samples) USING (host, pid)
    ANTI JOIN (
        SELECT DISTINCT host, pid, tid
        FROM n
        WHERE doing <> 'running'
    ) USING (host, pid, tid)
    WHERE activity IS NOT NULL
), workers AS (
    SELECT DISTINCT host, pid
    FROM python.samples
    WHERE contains(array_to_string(stack, ';'), '_bootstrap (')
        AND contains(array_to_string(stack, ';'), '/multiprocessing/process.py:')
), k AS (
    SELECT
        host,
        pid,
        tid,
        doing,
        target AS detail,
        place,
        weight,
        points,
        python,
        (host, pid) IN (SELECT (host, pid) FROM kymo.runs) AS first
    FROM a
    WHERE doing NOT IN ('running', 'ready', 'GIL', 'disk', 'stopped')
        AND NOT (place IS NULL AND (host, pid) IN (SELECT (host, pid) FROM workers))
        AND NOT (doing = 'lock' AND target NOT IN {include passive_locks})
), j AS (
    SELECT
        host,
        pid,
        tid,
        doing,
        mode(detail) AS detail,
        sum(weight) AS ns,
        CASE
            WHEN doing IN ('child', 'lock', 'wait') THEN 0.2
            WHEN doing = 'pipe' AND (SELECT count(*) FROM workers) > 0 THEN 0.2
            WHEN starts_with(mode(detail), 'listening') THEN 0.2
            WHEN doing = 'sleep' AND tid <> pid THEN 0.3
            WHEN tid <> pid THEN 0.9
            ELSE 1
        END
        * CASE WHEN bool_or(first) THEN 1 ELSE 0.8 END
        * CASE WHEN bool_or(python) THEN 1 ELSE 0.15 END AS part
    FROM k
    GROUP BY host, pid, tid, doing
    HAVING sum(points) >= 5
), t AS (
    SELECT *
    FROM j
    WHERE doing <> 'sleep'
        OR tid = pid
        OR EXISTS (
            SELECT 1
            FROM j AS m
            WHERE m.host = j.host AND m.pid = j.pid AND m.tid = m.pid
                AND m.doing IN ('lock', 'child', 'wait')
                AND m.ns > 0.2 * j.ns
        )
    ORDER BY ns * part DESC
    LIMIT 1
), f AS (
    SELECT k.place, k.weight
    FROM k
    SEMI JOIN t USING (host, pid, tid, doing)
), p AS (
    FROM {include top_place from=f}
), u AS (
    SELECT
        {run_ns} - least({run_ns}, greatest(sum(cpu_ns), max(tree_cpu_ns)) + sum(run_delay_ns))
            AS idle,
        greatest(sum(cpu_ns), max(tree_cpu_ns)) AS cpu_ns,
        sum(n) AS n,
        arg_max(pid, rss_bytes) AS pid
    FROM {include process_use}
)
SELECT
    least(u.idle, coalesce(t.ns, u.idle)) AS won,
    {run_ns},
    '',
    u.n,
    u.cpu_ns,
    u.pid,
    CASE
        WHEN (t.host, t.pid) IN (SELECT (host, pid) FROM workers)
            THEN 'waits for its worker processes: a worker '
        ELSE ''
    END
    || CASE t.doing
        WHEN 'sleep' THEN 'sleeps'
        WHEN 'socket' THEN 'waits for a socket' || coalesce(' (' || nullif(detail, '') || ')', '')
        WHEN 'child' THEN 'waits for a child' || coalesce(' (' || nullif(detail, '') || ')', '')
        WHEN 'pipe' THEN 'waits for a pipe'
        WHEN 'device' THEN 'waits for the device'
        WHEN 'collective'
            THEN 'waits for other ranks' || coalesce(' (' || nullif(detail, '') || ')', '')
        WHEN 'lock' THEN 'waits for ' || detail
        WHEN 'wait' THEN 'waits' || coalesce(' for ' || nullif(detail, ''), '')
        ELSE 'mostly waits: it used no CPU'
    END,
    coalesce(
        p.place,
        (
            SELECT nullif(arg_max(text, ts_ns), '')
            FROM trace.marks
            WHERE name = 'no progress: place' AND (SELECT count(*) FROM python.samples) = 0
        )
    ) AS place,
    p.share AS place_share,
    CASE t.doing
        WHEN 'sleep' THEN 'wait for the event itself instead of sleeping; sleep for a shorter time'
        WHEN 'socket' THEN 'make the other side faster, send several requests at once, or do other '
            || 'work meanwhile'
        WHEN 'child' THEN 'start several children at once, or do its work in the program'
        WHEN 'pipe' THEN 'make the process at the other end faster, or do other work meanwhile'
        WHEN 'device' THEN 'queue more work before each wait for the device'
        WHEN 'collective' THEN 'find the rank that is late: kymo report on the recording of each'
        WHEN 'lock' THEN CASE t.detail
            WHEN 'a thread to start'
                THEN 'start a few threads once and give them many items: ThreadPoolExecutor'
            ELSE 'make the thread that it waits for faster'
        END
    END AS advice
FROM u
LEFT JOIN t ON true
LEFT JOIN p ON true
WHERE u.n >= 3 AND (t.doing IS NOT NULL OR u.idle >= 0.6 * {run_ns})
