-- threshold: 0.10
-- weight: 0.9
-- least_s: 1
-- sentence: Memory is read back from storage: {count} major page fault{s}, about {won} of waiting.
-- evidence: at 0.2 ms per fault; caused by swapping, or by the first read of mapped files
-- advice: use less memory (smaller batches, fewer workers), or a machine with more
-- tab: memory
-- query: SELECT ts_ns, pid, major_faults FROM host.process
--
-- More than 200 major page faults a second in one process. The time is an estimate: the kernel
-- does not report how long each fault takes. The place is the function in which they happened:
-- those between two rows are shared among the samples of that time, mostly those in state D. A
-- process that has read back more than the memory that it holds, and holds less than 256
-- MiB, reads mapped files: no machine swaps for that.
WITH d AS (
    SELECT
        pid,
        ts_ns,
        lag(ts_ns) OVER w AS since,
        greatest(major_faults - lag(major_faults) OVER w, 0) AS faults
    FROM host.process
    WINDOW w AS (PARTITION BY pid ORDER BY ts_ns)
), i AS (
    SELECT a.place, d.faults * a.part / sum(a.part) OVER (PARTITION BY d.pid, d.ts_ns) AS weight
    FROM (
        SELECT pid, ts_ns, place, weight * CASE WHEN state = 'D' THEN 1 ELSE 0.1 END AS part
        FROM {include sampled_threads}
        WHERE place IS NOT NULL AND weight > 0 AND state IN ('D', 'R')
    ) AS a
    ASOF JOIN (SELECT * FROM d WHERE since IS NOT NULL) AS d
        ON a.pid = d.pid AND a.ts_ns <= d.ts_ns
    WHERE a.ts_ns > d.since AND d.faults > 0
), p AS (
    FROM {include top_place from=i}
)
SELECT
    least({run_ns}, f * 2e5),
    {run_ns},
    '',
    f,
    0,
    0,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share,
    CASE
        WHEN mapped THEN 'mapped files are read page by page: read larger pieces in order (pread, '
            || 'MADV_SEQUENTIAL), or keep in memory what is used again'
    END AS advice
FROM (
    SELECT
        max(major_faults) - min(major_faults) AS f,
        max(rss_bytes) < 268435456 AND f * 4096 > max(rss_bytes) AS mapped,
        (max(ts_ns) - min(ts_ns)) / 1e9 AS s
    FROM host.process
    GROUP BY host, pid
    ORDER BY 1 DESC
    LIMIT 1
)
WHERE f > 200 * s
