-- Memory and CPU usage of all processes of the program together. "Early" is after the first tenth,
-- when start-up is over. The peak of a single process is the kernel's, which sees what was taken
-- and freed between two samples; processes that had ended before the first sample are counted by
-- their parents.
WITH p AS (
    SELECT *, min(ts_ns) OVER () + (max(ts_ns) OVER () - min(ts_ns) OVER ()) / 10 AS early
    FROM host.program
), k AS (
    SELECT max(peak_bytes) AS bytes, arg_max(ts_ns, peak_bytes) AS at
    FROM host.process
), u AS (
    SELECT greatest(sum(cpu_ns), max(tree_cpu_ns)) AS cpu_ns, sum(n) AS n, count(*) AS processes
    FROM {include process_use}
)
SELECT
    greatest(max(p.rss_bytes), any_value(k.bytes)),
    CASE
        WHEN any_value(k.bytes) > coalesce(max(p.rss_bytes), 0) THEN any_value(k.at)
        ELSE arg_max(p.ts_ns, p.rss_bytes)
    END,
    arg_max(p.rss_bytes, p.ts_ns),
    max(p.ts_ns),
    100 * any_value(u.cpu_ns) / (SELECT nullif(max(duration_ns), 0) FROM kymo.runs),
    any_value(u.n),
    arg_min(p.rss_bytes, p.ts_ns) FILTER (p.ts_ns >= early),
    min(p.ts_ns) FILTER (p.ts_ns >= early),
    any_value(u.processes)
FROM k, u
LEFT JOIN p ON true
