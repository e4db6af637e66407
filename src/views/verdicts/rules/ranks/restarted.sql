-- threshold: 0.001
-- weight: 0.9
-- sentence: The job was restarted {count} time{s}: {name} {which} after {a}.
-- evidence: {won} of {whole} passed before the last attempt began; other findings are of all
--     attempts
-- advice: read the output of that rank; kymo compare --by attempt compares the attempts
-- tab: timeline
-- query: SELECT attempt, rank, state, exit_code, signal, first_ns, last_ns FROM dist.ranks
--     ORDER BY attempt, rank
--
-- Elastic restarts: ranks of several attempts. What is lost is the time until the last attempt
-- began. The rank that is named ended the last attempt before that one: the first that recorded an
-- exception or has a failing exit status, else the first whose end no signal of the launcher
-- (SIGTERM) explains. The place is where it was last seen.
WITH
r AS (
    SELECT *, coalesce(attempt, 0) AS n
    FROM dist.ranks
    WHERE pid IS NOT NULL AND state <> 'wrote nothing'
),
l AS (
    SELECT max(n) AS n, count(DISTINCT n) - 1 AS restarts, arg_max(first_ns, n) AS began_ns
    FROM (SELECT n, min(first_ns) AS first_ns FROM r GROUP BY n)
),
e AS (
    SELECT host, pid, arg_min(text, ts_ns) AS text, min(ts_ns) AS ns
    FROM trace.marks
    WHERE name = 'uncaught exception'
    GROUP BY host, pid
),
f AS (
    SELECT
        r.*,
        e.text,
        coalesce(e.ns, r.last_ns) AS failed_ns,
        (SELECT min(first_ns) FROM r o WHERE o.n = r.n) AS began_ns
    FROM r
    LEFT JOIN e ON e.host IS NOT DISTINCT FROM r.host AND e.pid = r.pid
    WHERE r.n < (SELECT n FROM l)
    ORDER BY
        r.n DESC,
        e.text IS NOT NULL DESC,
        coalesce(r.exit_code, 0) > 0 DESC,
        coalesce(r.signal, '') <> 'SIGTERM' DESC,
        failed_ns
    LIMIT 1
)
SELECT
    l.began_ns - (SELECT min(first_ns) FROM r),
    {run_ns},
    'rank ' || f.rank
    || CASE
        WHEN (SELECT count(DISTINCT host) FROM r) > 1 THEN ' on host ' || f.host
        ELSE ''
    END,
    l.restarts,
    greatest(f.failed_ns - f.began_ns, 0),
    0,
    CASE
        WHEN f.text IS NOT NULL
            THEN 'failed with ' || left(split_part(f.text, chr(10), 1), 120)
        WHEN f.exit_code > 0 THEN 'failed with exit status ' || f.exit_code
        WHEN f.signal IS NOT NULL THEN 'was killed by ' || f.signal
        ELSE 'ended'
    END,
    (
        SELECT arg_max(s.place, s.ts_ns)
        FROM python.samples s
        WHERE s.pid = f.pid AND s.host IS NOT DISTINCT FROM f.host AND s.tid = s.pid
    ) AS place
FROM l, f
WHERE l.restarts > 0
