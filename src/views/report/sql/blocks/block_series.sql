-- Measurements over time as columns, each with at most 600 points: the least and the most value of
-- that part of the run. o is their order, g their group in the metrics tab; timeline is true for
-- those that the timeline shows too. A new measurement is one more SELECT.
SELECT
    name,
    unit,
    g AS "group",
    timeline,
    list(ts ORDER BY k) AS ts,
    list(low ORDER BY k) AS low,
    list(high ORDER BY k) AS high
FROM (
    SELECT
        o,
        name,
        unit,
        g,
        timeline,
        ts * 600 // (SELECT greatest(max(duration_ns), 1) FROM kymo.runs) AS k,
        min(ts) AS ts,
        min(v)::DOUBLE AS low,
        max(v)::DOUBLE AS high
    FROM (
        SELECT
            1 AS o,
            'Resident memory' AS name,
            'bytes' AS unit,
            'memory' AS g,
            true AS timeline,
            ts_ns AS ts,
            rss_bytes AS v
        FROM host.program
        UNION ALL
        SELECT 2, 'Allocated, ' || source, 'bytes', 'memory', true, ts_ns, live_bytes
        FROM alloc.timeline
        UNION ALL
        SELECT 3, 'Device memory, ' || device, 'bytes', 'memory', true, ts_ns, live_bytes
        FROM device.memory
        UNION ALL
        SELECT 4, 'CPU, program', '%', 'cpu', false, ts_ns, cpu_pct
        FROM host.program
        UNION ALL
        SELECT 5, 'CPU, machine', '%', 'cpu', false, ts_ns, busy_pct
        FROM host.cpu
        WHERE cpu IS NULL
        UNION ALL
        SELECT 6, 'Waiting for I/O, machine', '%', 'cpu', false, ts_ns, iowait_pct
        FROM host.cpu
        WHERE cpu IS NULL
        UNION ALL
        SELECT 7, 'Waiting for a core, machine', '%', 'cpu', false, ts_ns, pressure_pct
        FROM host.cpu
        WHERE cpu IS NULL
        UNION ALL
        SELECT 8, 'Read', 'bytes/s', 'io', false, ts_ns, {include rate value=read_bytes per=pid}
        FROM host.io
        WHERE (host, pid) = {include main_pid}
        UNION ALL
        SELECT 9, 'Written', 'bytes/s', 'io', false, ts_ns, {include rate value=write_bytes per=pid}
        FROM host.io
        WHERE (host, pid) = {include main_pid}
        UNION ALL
        SELECT
            10,
            'Received, ' || interface,
            'bytes/s',
            'network',
            false,
            ts_ns,
            {include rate value=rx_bytes per=interface}
        FROM host.network
        UNION ALL
        SELECT
            11,
            'Sent, ' || interface,
            'bytes/s',
            'network',
            false,
            ts_ns,
            {include rate value=tx_bytes per=interface}
        FROM host.network
        UNION ALL
        SELECT 12, 'GPU ' || device || ', busy', '%', 'gpu', false, ts_ns, util_pct
        FROM host.gpu
        UNION ALL
        SELECT 13, 'GPU ' || device || ', memory', 'bytes', 'memory', false, ts_ns, used_bytes
        FROM host.gpu
        UNION ALL
        SELECT 14, name, '', 'counter', true, ts_ns, value
        FROM trace.counters
        WHERE name IN (
            SELECT name
            FROM trace.counters
            GROUP BY 1
            ORDER BY count(*) DESC, 1
            LIMIT 24
        )
    )
    WHERE isfinite(v::DOUBLE) AND name IS NOT NULL
    GROUP BY ALL
)
GROUP BY ALL
ORDER BY any_value(o), name
LIMIT 60
