-- threshold: 0.10
-- weight: 0.8
-- sentence: Threads wait for locks: {won} in total, {share} of the run, mostly in {name}.
-- evidence: {which}
-- advice: hold the lock for a shorter time, or give each thread its own data
-- tab: timeline
-- query: SELECT activity, waits_for, place, sum(weight_ns)
--     FROM (FROM python.samples UNION ALL BY NAME FROM native.samples) GROUP BY ALL ORDER BY 4 DESC
--
-- Two estimates; the larger one counts. Regions: self time of those whose name contains one of the
-- usual words for a lock, as a whole word. Samples: threads in a system call on a lock that is not
-- the GIL, a queue, an Event, or another thread to be joined. The holder of a mutex of C is known:
-- its function is where that thread was while others waited. Otherwise it is the function in which
-- another thread of the process was, at the same moments, without waiting for a lock itself.
WITH r AS (
    SELECT
        sum(self_ns) AS ns,
        arg_max(name, self_ns) AS name,
        sum(count) AS n,
        max(max_ns) AS longest
    FROM trace.regions
    WHERE regexp_matches(
        name,
        '(^|[^a-z])(lock|rlock|mutex|acquire|semaphore|barrier|condition)([^a-z]|$)',
        'i'
    )
), a AS (
    SELECT host, pid, tid, ts_ns, doing, target, place, weight, time_ns, holder, python
    FROM {include waiting_threads}
    WHERE time_ns > 0
), w AS (
    SELECT *
    FROM a
    WHERE doing = 'lock' AND place IS NOT NULL AND target NOT IN {include passive_locks}
), h AS (
    SELECT o.place, o.weight
    FROM a AS o
    SEMI JOIN w USING (host, pid, ts_ns)
    WHERE o.doing <> 'lock' AND o.place IS NOT NULL AND o.python
    UNION ALL
    SELECT o.place, o.weight
    FROM w
    JOIN a AS o ON o.host = w.host
        AND o.pid = w.pid
        AND o.ts_ns BETWEEN w.ts_ns - w.time_ns - 10000000 AND w.ts_ns + 10000000
        AND (o.tid = w.holder OR (w.holder IS NULL AND o.tid <> w.tid AND o.doing = 'running'))
    WHERE NOT w.python AND o.place IS NOT NULL
), p AS (
    FROM {include top_place from=w}
), q AS (
    SELECT regexp_replace(place, ' \((.*/)?([^/]*)\)$', ' (\2)') AS label
    FROM {include top_place from=h}
    WHERE share >= 0.3
), s AS (
    SELECT sum(time_ns) AS ns, count(*) AS n
    FROM w
    HAVING n >= 5
)
SELECT
    greatest(coalesce(r.ns, 0), coalesce(s.ns, 0)),
    greatest({run_ns}, coalesce(r.ns, 0), coalesce(s.ns, 0)),
    coalesce(r.name, (SELECT {include place_name} FROM p)),
    r.n,
    r.longest,
    0,
    concat_ws(
        '; ',
        CASE
            WHEN r.n > 0
                THEN format('{:,}', r.n::BIGINT) || ' waits, the longest '
                    || format('{:.3g}', r.longest / 1e6) || ' ms'
        END,
        CASE WHEN r.n IS NULL THEN s.n || ' samples' END,
        (
            SELECT 'held in ' || label
            FROM q
            WHERE s.n > 0
        )
    ),
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share,
    (
        SELECT 'hold the lock for a shorter time: it is held in ' || label
            || '; or give each thread its own data'
        FROM q
        WHERE s.n > 0
    ) AS advice
FROM (SELECT 1)
LEFT JOIN r ON r.ns > 0
LEFT JOIN s ON true
WHERE r.ns > 0 OR s.ns > 0
