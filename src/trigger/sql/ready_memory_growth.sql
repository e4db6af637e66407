-- One row for each doubling of the growth, so that a leak fires a few times and not every second.
WITH r AS (
    SELECT pid, host, rank, ts_ns, rss_bytes
    FROM host.process
    WHERE ts_ns > (SELECT max(duration_ns) FROM kymo.runs) - 600e9
), e AS (
    SELECT
        pid,
        host,
        rank,
        min(rss_bytes) FILTER (ts_ns > first_ns + 10e9) AS before_bytes,
        max_by(rss_bytes, ts_ns) AS now_bytes
    FROM (SELECT *, min(ts_ns) OVER (PARTITION BY pid, host) AS first_ns FROM r)
    GROUP BY pid, host, rank
)
SELECT
    pid,
    rank,
    host,
    floor(log2((now_bytes - before_bytes) / 268435456.0))::INTEGER AS doublings
FROM e
WHERE now_bytes - before_bytes > greatest(0.2 * before_bytes, 268435456)
