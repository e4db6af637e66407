-- threshold: 0.30
-- weight: 0.03
-- least_s: 2
-- sentence: Memory grows throughout the run: from {a_bytes} after start-up to {b_bytes} at the end.
-- evidence: RSS grew steadily over {count} samples
-- advice: find what is kept: lists of losses that hold graphs (use .item()), unbounded caches
-- tab: memory
-- query: SELECT ts_ns, pid, rss_bytes FROM host.process
--
-- No time can be saved, but the OOM killer may end the run: the weight is low, so that this ranks
-- first only if nothing else is found. The first fifth is start-up. The last twentieth is not part
-- of the fit: a program frees memory as it ends.
SELECT
    {run_ns} * (late - early) / late,
    {run_ns},
    '',
    n,
    early,
    late
FROM (
    SELECT
        regr_r2(rss_bytes, ts_ns) FILTER (ts_ns <= calm) AS r2,
        regr_slope(rss_bytes, ts_ns) FILTER (ts_ns <= calm) AS slope,
        arg_min(rss_bytes, ts_ns) AS early,
        arg_max(rss_bytes, ts_ns) AS late,
        count(*) AS n
    FROM (
        SELECT
            *,
            min(ts_ns) OVER w + (max(ts_ns) OVER w - min(ts_ns) OVER w) / 5 AS settled,
            max(ts_ns) OVER w - (max(ts_ns) OVER w - min(ts_ns) OVER w) / 20 AS calm
        FROM host.process
        WINDOW w AS (PARTITION BY pid)
    )
    WHERE ts_ns >= settled
    GROUP BY pid
    ORDER BY late DESC
    LIMIT 1
)
WHERE n >= 5 AND slope > 0 AND r2 > 0.8 AND late - early > 16e6
