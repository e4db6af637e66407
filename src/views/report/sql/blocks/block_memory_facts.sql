-- Resident memory of the program: its peak, its value after start-up (the first tenth of the
-- samples) and its last one. The peak of a single process is the kernel's, as in facts_memory.
WITH p AS (
    SELECT *, min(ts_ns) OVER () + (max(ts_ns) OVER () - min(ts_ns) OVER ()) / 10 AS early
    FROM host.program
), k AS (
    SELECT max(bytes) AS bytes, arg_max(ts_ns, bytes) AS at, count(*) AS n
    FROM (
        SELECT ts_ns, greatest(peak_bytes, family_peak_bytes) AS bytes
        FROM host.process
    )
)
SELECT
    greatest(max(p.rss_bytes), any_value(k.bytes)) AS peak_bytes,
    CASE
        WHEN any_value(k.bytes) > coalesce(max(p.rss_bytes), 0) THEN any_value(k.at)
        ELSE arg_max(p.ts_ns, p.rss_bytes)
    END AS peak_at_ns,
    arg_min(p.rss_bytes, p.ts_ns) FILTER (p.ts_ns >= early) AS early_bytes,
    min(p.ts_ns) FILTER (p.ts_ns >= early) AS early_at_ns,
    arg_max(p.rss_bytes, p.ts_ns) AS last_bytes,
    any_value(k.n) AS samples
FROM k
LEFT JOIN p ON true
