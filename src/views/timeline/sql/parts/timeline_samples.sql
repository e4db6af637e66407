-- Stack samples of all threads for a timeline. A native sample stands for the time before it. A row
-- without a stack follows where the next one begins later.
(
    WITH native AS (
        SELECT
            *,
            lead(ts_ns - weight_ns) OVER (PARTITION BY host, pid, tid ORDER BY ts_ns) AS next_ns
        FROM native.samples n
        WHERE NOT EXISTS (
            FROM python.samples p
            WHERE p.host = n.host AND p.pid = n.pid AND p.tid = n.tid
        )
    )
    SELECT host, pid, tid, thread, ts_ns, stack FROM python.samples
    UNION ALL
    SELECT host, pid, tid, thread, ts_ns, stack FROM native
    UNION ALL
    SELECT host, pid, tid, thread, ts_ns + weight_ns, NULL
    FROM native
    WHERE next_ns > ts_ns + 3 * weight_ns
)
