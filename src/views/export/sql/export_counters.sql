-- Values of counters, numbered for each process and name.
SELECT
    ts_ns,
    pid,
    name,
    value,
    row_number() OVER (PARTITION BY host, pid, name ORDER BY ts_ns) AS n,
    tid
FROM trace.counters
ORDER BY pid, name, n
