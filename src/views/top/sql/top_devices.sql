-- Devices in the last seconds: the busy time of each queue, and the utilisation of GPUs.
SELECT
    concat_ws(' ', device, queue) AS label,
    sum(least(end_ns, {to_ns}) - greatest(start_ns, {from_ns})) / {window_ns} AS busy,
    NULL AS used_bytes
FROM device.ops
WHERE end_ns > {from_ns}
    AND start_ns < {to_ns}
    AND kind NOT IN ('marker', 'barrier', 'execution', 'module')
GROUP BY device, queue
UNION ALL
SELECT
    'GPU ' || device,
    arg_max(util_pct, ts_ns) / 100,
    arg_max(used_bytes, ts_ns)
FROM host.gpu
WHERE ts_ns >= {from_ns}
GROUP BY device
ORDER BY busy DESC
LIMIT {TOP_DEVICES}
