-- threshold: 0.15
-- weight: 0.6
-- least_s: 1
-- sentence: Many small reads and writes: {count} system calls of {a_bytes} each, and the kernel
--     takes {share} of the run ({won}).
-- evidence: files are opened, read or written piece by piece
-- advice: keep files in memory, pack many into one, read and write larger pieces
-- tab: metrics
-- query: SELECT ts_ns, pid, read_calls, write_calls, moved_bytes, kernel_ns FROM host.io
--
-- More than 2,000 calls a second of less than 32 KiB each, in one process; the time is that of its
-- CPU in the kernel. The run counts without the time in which the process was ready but had no
-- core. The place is the function that ran while the calls were made: those between
-- two rows are shared among the samples of that time.
WITH d AS (
    SELECT
        host,
        pid,
        ts_ns,
        lag(ts_ns) OVER w AS since,
        greatest(read_calls + write_calls - lag(read_calls + write_calls) OVER w, 0) AS calls
    FROM host.io
    WINDOW w AS (PARTITION BY host, pid ORDER BY ts_ns)
), u AS (
    SELECT
        host,
        pid,
        max(read_calls + write_calls) - min(read_calls + write_calls) AS calls,
        max(moved_bytes) - min(moved_bytes) AS bytes,
        max(kernel_ns) - min(kernel_ns) AS ns
    FROM host.io
    WHERE read_calls IS NOT NULL
    GROUP BY host, pid
    ORDER BY ns DESC
    LIMIT 1
), i AS (
    SELECT a.place, d.calls * a.weight / sum(a.weight) OVER (PARTITION BY d.ts_ns) AS weight
    FROM (
        SELECT host, pid, ts_ns, place, weight
        FROM {include sampled_threads}
        SEMI JOIN u USING (host, pid)
        WHERE place IS NOT NULL AND weight > 0 AND state IN ('R', 'D')
            AND NOT {include in_import}
    ) AS a
    ASOF JOIN (SELECT * FROM d WHERE since IS NOT NULL) AS d
        ON a.host = d.host AND a.pid = d.pid AND a.ts_ns <= d.ts_ns
    WHERE a.ts_ns > d.since
), p AS (
    FROM {include top_place from=i}
)
SELECT
    least(ns, {run_ns}),
    greatest(had_ns, ns),
    '',
    calls,
    bytes / calls,
    0,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM (
    SELECT u.*, greatest({run_ns} - coalesce(d.run_delay_ns, 0), 0.1 * {run_ns}) AS had_ns
    FROM u
    LEFT JOIN {include process_use} AS d USING (host, pid)
)
WHERE calls > 2000 * had_ns / 1e9 AND bytes < 32768 * calls
