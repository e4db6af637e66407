-- threshold: 0.30
-- weight: 0.2
-- least_s: 1
-- sentence: Memory grows throughout the run: from {a_bytes} after start-up to {b_bytes} at the end.
-- evidence: RSS grew steadily, in {count} rows
-- advice: find what is kept: unbounded lists and caches; kymo run --memory names the lines that
--     allocate it
-- tab: memory
-- query: SELECT ts_ns, pid, rss_bytes FROM host.process
--
-- No time can be saved, but the OOM killer may end the run: the weight is such that this ranks
-- behind what takes much of the time. The first fifth is start-up, and so are imports. The last
-- twentieth is not part of the fit, nor what follows a late peak: a program frees memory as it
-- ends, which takes a while on a busy machine.
--
-- The place is the line that allocated most of what is still live, if allocations were recorded;
-- else the function in which RSS rose (memory_rise). RSS is read often and written when it has
-- changed: the fit is over 40 moments, each with the RSS of the last row before it.
WITH m AS (
    SELECT host, pid, ts_ns, rss_bytes
    FROM host.process
    WHERE rss_bytes > 0
    UNION ALL
    SELECT host, pid, ts_ns, rss_bytes
    FROM host.memory
), x AS (
    SELECT host, pid, quantile_disc(ts_ns, 0.99) AS until
    FROM {include weighted_samples}
    WHERE {include in_import}
    GROUP BY host, pid
), t AS (
    SELECT
        host,
        pid,
        greatest(
            min(ts_ns) + (max(ts_ns) - min(ts_ns)) / 5,
            coalesce(any_value(x.until), 0)
        ) AS settled,
        least(
            max(ts_ns) - (max(ts_ns) - min(ts_ns)) / 20,
            CASE
                WHEN arg_max(ts_ns, rss_bytes) > 0.3 * min(ts_ns) + 0.7 * max(ts_ns)
                    THEN arg_max(ts_ns, rss_bytes)
                ELSE max(ts_ns)
            END
        ) AS calm,
        count(*) AS n
    FROM m
    LEFT JOIN x USING (host, pid)
    GROUP BY host, pid
    HAVING max(rss_bytes) - min(rss_bytes) > 16e6
        AND calm - settled > 0.3 * {run_ns}
), k AS (
    SELECT host, pid, n, settled + (calm - settled) * i / 40 AS moment
    FROM t, range(41) AS x(i)
), g AS (
    SELECT
        k.host,
        k.pid,
        any_value(k.n) AS n,
        regr_r2(m.rss_bytes, k.moment) AS r2,
        regr_slope(m.rss_bytes, k.moment) AS slope,
        arg_min(m.rss_bytes, k.moment) AS early,
        arg_max(m.rss_bytes, k.moment) AS late,
        min(k.moment) AS from_ns
    FROM k
    ASOF JOIN m ON m.host = k.host AND m.pid = k.pid AND k.moment >= m.ts_ns
    GROUP BY k.host, k.pid
    HAVING n >= 5 AND slope > 0 AND r2 > 0.8
        AND late - early > CASE WHEN {run_ns} < 1e10 THEN 48e6 ELSE 16e6 END
    ORDER BY late DESC
    LIMIT 1
), p AS (
    FROM {include memory_rise of=g}
), a AS (
    SELECT site AS place, live_bytes / sum(live_bytes) OVER () AS share
    FROM alloc.sites
    WHERE live_bytes > 0
    ORDER BY live_bytes DESC
    LIMIT 1
)
SELECT
    {run_ns} * (late - early) / late,
    {run_ns},
    '',
    n,
    early,
    late,
    coalesce((SELECT place FROM a), (SELECT place FROM p)) AS place,
    coalesce((SELECT share FROM a), (SELECT share FROM p)) AS place_share,
    CASE
        WHEN (SELECT count(*) FROM python.torch_trace) > 0
            THEN 'losses that are kept with their graph grow so: keep loss.item() or '
                || 'loss.detach(); else find unbounded lists and caches (kymo run --memory)'
    END AS advice
FROM g
