-- Native samples of threads without Python, with the columns of weighted_samples, the thread that
-- holds the lock, and whether the thread was idle. A file of an older version lacks some of them,
-- as in weighted_samples: its samples are those of running threads.
(
    SELECT s.*
    FROM (
        SELECT
            'running'::VARCHAR AS activity,
            NULL::VARCHAR AS waits_for,
            NULL::INTEGER AS holder
    ) AS unknown,
        LATERAL (
            SELECT
                ts_ns,
                host,
                pid,
                tid,
                thread,
                stack,
                place,
                CASE activity WHEN 'running' THEN 'R' WHEN 'disk' THEN 'D' ELSE 'S' END AS state,
                'period' AS cause,
                weight_ns,
                weight_ns AS time_ns,
                weight_ns AS weight,
                activity AS doing,
                coalesce(waits_for, '') AS target,
                holder,
                {include native_idle} AS idle
            FROM native.samples n
            WHERE NOT EXISTS (
                FROM python.samples p
                WHERE p.host = n.host AND p.pid = n.pid AND p.tid = n.tid
            )
        ) AS s
)
