-- Memory that grows from step to step: one row, or none. Of allocations if they were recorded, else
-- of the resident memory. Only the second half of the steps counts: imports and warm-up come
-- before it. It is divided into ten parts; the growth is the median of the differences from part to
-- part (l, parts, fit), so that a single jump does not count either. since is the first step from
-- which on it holds, and grown gives the site that grew most after that step.
WITH line AS MATERIALIZED (
    SELECT host, pid, ts_ns, live_bytes
    FROM alloc.timeline
    UNION ALL
    SELECT host, pid, ts_ns, rss_bytes
    FROM host.process
    WHERE rss_bytes IS NOT NULL AND NOT EXISTS (FROM alloc.timeline)
), ends AS MATERIALIZED (
    SELECT s.step, s.host, s.pid, s.start_ns + s.duration_ns AS ts_ns
    FROM {include steps} s
), l AS MATERIALIZED (
    SELECT e.step, e.host, e.pid, e.ts_ns, t.ts_ns AS read_ns, t.live_bytes::DOUBLE AS live
    FROM ends e
    ASOF JOIN line t ON t.host = e.host AND t.pid = e.pid AND t.ts_ns <= e.ts_ns
), late AS (
    SELECT *, ntile(10) OVER (ORDER BY step) AS part
    FROM l
    WHERE step >= (SELECT median(step) FROM l)
), parts AS (
    SELECT
        (avg(live) - lag(avg(live)) OVER (ORDER BY part))
            / (avg(step) - lag(avg(step)) OVER (ORDER BY part)) AS slope
    FROM late
    GROUP BY part
), fit AS (
    SELECT
        (SELECT median(slope) FROM parts) AS slope,
        regr_r2(live, step) > 0.9
            OR (SELECT avg((slope > 0)::INT) FROM parts WHERE slope IS NOT NULL) >= 0.8 AS steady,
        count(*) AS n,
        count(DISTINCT read_ns) AS readings
    FROM late
), rest AS (
    SELECT step, ts_ns, live - slope * step AS low, slope
    FROM l, fit
    WHERE n >= 5
        AND readings >= 5
        AND steady
        AND slope * n > 1048576
        AND slope * n > 0.05 * (SELECT max(live) FROM l)
), since AS (
    SELECT
        min(step) AS step,
        min(ts_ns) AS ts_ns,
        any_value(slope) AS slope
    FROM rest
    WHERE low <= (
        SELECT min(low) + greatest(0.05 * (max(low) - min(low)), 0.5 * any_value(slope))
        FROM rest
    )
), grown AS (
    SELECT
        site,
        sum(CASE WHEN kind = 'alloc' THEN size * weight ELSE -size * weight END) AS bytes
    FROM alloc.allocations a, since s
    WHERE a.ts_ns > s.ts_ns
        AND a.ts_ns <= (SELECT max(ts_ns) FROM l)
        AND (a.host, a.pid) = (SELECT any_value((host, pid)) FROM l)
    GROUP BY site
)
SELECT
    slope AS step_bytes,
    step + 1 AS since_step,
    (SELECT arg_max(site, bytes) FROM grown) AS site
FROM since
WHERE slope IS NOT NULL
