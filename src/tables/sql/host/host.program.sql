-- Memory and CPU of all processes of the program together, over time.
--
-- ts_ns      BIGINT  time, in ns since the recording began
-- processes  BIGINT  number of processes
-- rss_bytes  BIGINT  sum of their resident memory; pages that they share count for each of them
-- cpu_pct    DOUBLE  sum of their CPU usage; 100 is one core
--
-- A row for each row of host.process, with the latest values of the other processes. A process that
-- has ended counts until half a second after its last row: the processes of one sample have
-- slightly different times.
WITH known AS (
    SELECT ts_ns, host, pid, rss_bytes, cpu_pct
    FROM host.process
    WHERE rss_bytes IS NOT NULL
), changes AS (
    SELECT
        ts_ns,
        (lag(pid) OVER of_process IS NULL)::BIGINT AS processes,
        rss_bytes - lag(rss_bytes, 1, 0) OVER of_process AS rss_bytes,
        cpu_pct - lag(cpu_pct, 1, 0) OVER of_process AS cpu_pct
    FROM known
    WINDOW of_process AS (PARTITION BY host, pid ORDER BY ts_ns)
    UNION ALL
    SELECT
        max(ts_ns) + 500000000,
        -1,
        -arg_max(rss_bytes, ts_ns),
        -arg_max(cpu_pct, ts_ns)
    FROM known
    GROUP BY host, pid
)
SELECT
    ts_ns,
    (sum(processes) OVER so_far)::BIGINT AS processes,
    (sum(rss_bytes) OVER so_far)::BIGINT AS rss_bytes,
    round(sum(cpu_pct) OVER so_far, 1) AS cpu_pct
FROM changes
WHERE ts_ns <= (SELECT max(ts_ns) FROM known)
WINDOW so_far AS (ORDER BY ts_ns ROWS UNBOUNDED PRECEDING)
