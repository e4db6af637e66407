-- The peak of allocated memory: one row of the process with the highest, or none. The errors of
-- sampled sites are independent, so their squares add up.
SELECT * EXCLUDE (host)
FROM (
    SELECT
        host,
        pid,
        max(live_bytes)::DOUBLE AS peak_bytes,
        arg_max(ts_ns, live_bytes)::DOUBLE AS at_ns,
        arg_max(live_bytes, ts_ns)::DOUBLE AS last_bytes,
        any_value(source) AS source
    FROM alloc.timeline
    GROUP BY host, pid
    ORDER BY peak_bytes DESC
    LIMIT 1
)
JOIN (
    SELECT
        host,
        pid,
        sqrt(sum(at_peak_error_bytes::DOUBLE ** 2)) AS error_bytes,
        sum(at_peak_estimated_bytes)::DOUBLE AS estimated_bytes
    FROM alloc.sites
    GROUP BY host, pid
) USING (host, pid)
