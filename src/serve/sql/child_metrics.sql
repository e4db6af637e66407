-- Figures of /metrics that the streams alone do not give: the family, up to three labels and a
-- value.
SELECT
    'kymo_memory_bytes' AS family,
    'process' AS key1,
    pid::VARCHAR AS value1,
    'rank' AS key2,
    rank::VARCHAR AS value2,
    'host' AS key3,
    host AS value3,
    arg_max(rss_bytes, ts_ns)::DOUBLE AS value
FROM host.memory
GROUP BY pid, rank, host

UNION ALL

SELECT
    'kymo_cpu_ratio',
    'process',
    pid::VARCHAR,
    'rank',
    rank::VARCHAR,
    'host',
    host,
    arg_max(cpu_pct, ts_ns) / 100
FROM host.process
GROUP BY pid, rank, host

UNION ALL

SELECT family, 'device', device::VARCHAR, 'host', host, NULL, NULL, arg_max(value, ts_ns)
FROM (
    UNPIVOT (
        SELECT
            device,
            host,
            ts_ns,
            util_pct / 100 AS kymo_gpu_utilization_ratio,
            used_bytes::DOUBLE AS kymo_gpu_memory_used_bytes,
            total_bytes::DOUBLE AS kymo_gpu_memory_size_bytes,
            power_w AS kymo_gpu_power_watts
        FROM host.gpu
    )
    ON COLUMNS('kymo_.*') INTO NAME family VALUE value
)
GROUP BY family, device, host

UNION ALL

SELECT
    'kymo_device_busy_ratio',
    'device',
    device,
    'rank',
    rank::VARCHAR,
    'host',
    host,
    max(busy)
FROM device.breakdown
GROUP BY device, rank, host

UNION ALL

SELECT 'kymo_overhead_ratio', 'source', source, NULL, NULL, NULL, NULL, sum(pct) / 100
FROM kymo.overhead
WHERE pct IS NOT NULL
GROUP BY source

UNION ALL

SELECT
    'kymo_trigger_actions',
    'trigger',
    left(trigger, 100),
    'action',
    left(action, 40),
    'ok',
    (result = 'ok')::VARCHAR,
    count(*)
FROM kymo.triggers
GROUP BY ALL

UNION ALL

SELECT *
FROM (
    SELECT
        'kymo_counter_value',
        'counter',
        left(name, 100),
        'rank',
        rank::VARCHAR,
        NULL,
        NULL,
        arg_max(value, ts_ns)
    FROM trace.counters
    GROUP BY left(name, 100), rank
    ORDER BY max(ts_ns) DESC
    LIMIT 500
)
