-- Threads that were seen in the last seconds: what each did last, where, and its use of a core. A
-- thread without Python is where its last native sample was.
WITH s AS (
    SELECT
        host,
        pid,
        tid,
        arg_max(
            {'thread': thread, 'doing': activity, 'state': state, 'what': waits_for, 'at': place},
            ts_ns
        ) AS last,
        sum(weight_ns) FILTER (state = 'R') / nullif(sum(weight_ns), 0) AS running
    FROM kymo_samples(from_ns := {from_ns})
    WHERE cause = 'period'
    GROUP BY host, pid, tid
), n AS (
    SELECT
        host,
        pid,
        tid,
        arg_max(
            {'at': coalesce(place, stack[1]), 'doing': activity, 'what': waits_for},
            ts_ns
        ) AS last
    FROM kymo_native_samples(from_ns := {from_ns})
    GROUP BY host, pid, tid
), h AS (
    SELECT
        host,
        target_pid AS pid,
        target_tid AS tid,
        arg_max(target_thread, ts_ns) AS thread,
        arg_max(cpu_pct, ts_ns) AS cpu_pct,
        arg_max(state, ts_ns) AS state
    FROM kymo_scan('host.threads', from_ns := {from_ns})
    GROUP BY ALL
)
SELECT
    coalesce(s.pid, h.pid),
    coalesce(s.tid, h.tid) AS tid,
    coalesce(s.last.thread, h.thread),
    coalesce(
        s.last.doing,
        CASE s.last.state WHEN 'R' THEN 'running' WHEN 'D' THEN 'disk' WHEN 'S' THEN 'wait' END,
        n.last.doing,
        h.state::VARCHAR
    ),
    CASE WHEN s.tid IS NULL THEN n.last.what ELSE s.last.what END,
    regexp_replace(
        CASE WHEN s.tid IS NULL THEN n.last.at ELSE s.last.at END,
        '\((.*/)?([^/]*)\)$',
        '(\2)'
    ),
    coalesce(h.cpu_pct, 100 * s.running) AS cpu
FROM s
FULL JOIN h ON h.host = s.host AND h.pid = s.pid AND h.tid = s.tid
LEFT JOIN n
    ON n.host = coalesce(s.host, h.host)
    AND n.pid = coalesce(s.pid, h.pid)
    AND n.tid = coalesce(s.tid, h.tid)
ORDER BY cpu DESC NULLS LAST, tid
LIMIT {TOP_THREADS}
