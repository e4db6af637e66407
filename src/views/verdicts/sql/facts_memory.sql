-- Memory and CPU usage of all processes of the program together. "Early" is after the first tenth,
-- when start-up is over. The peak of a single process is the kernel's, which sees what was taken
-- and freed between two samples, also of a child; the CPU time of children that lived between two
-- samples is counted by their parents.
WITH p AS (
    SELECT *, min(ts_ns) OVER () + (max(ts_ns) OVER () - min(ts_ns) OVER ()) / 10 AS early
    FROM host.program
), k AS (
    SELECT max(bytes) AS bytes, arg_max(ts_ns, bytes) AS at
    FROM (
        SELECT ts_ns, greatest(peak_bytes, family_peak_bytes) AS bytes
        FROM host.process
    )
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
