-- Memory and CPU of all processes together: the last values of each in the last seconds.
SELECT
    sum(rss),
    sum(cpu),
    count(*),
    max(peak)
FROM (
    SELECT
        host,
        pid,
        arg_max(rss_bytes, ts_ns) AS rss,
        arg_max(cpu_pct, ts_ns) AS cpu,
        max(peak_bytes) AS peak
    FROM host.process
    WHERE ts_ns >= {from_ns}
    GROUP BY host, pid
)
