-- threshold: 0.75
-- weight: 0.12
-- sentence: The device is the bottleneck: its kernels are {share} of the critical path ({won} of
--     {whole}), mostly {name}.
-- evidence: {name} takes {a} of it in {count} run{s}; the host is ahead
-- advice: make the kernels cheaper: a lower precision, fused kernels (torch.compile), better
--     shapes; a faster host does not help
-- tab: devices
-- query: SELECT name, count(*), sum(duration_ns) FROM trace.critical_path WHERE kind = 'kernel'
--     GROUP BY 1 ORDER BY 3 DESC
--
-- Imported traces in which the host does not wait for the device: if it does, device_bound applies.
WITH t AS (
    SELECT
        sum(duration_ns) AS ns,
        sum(duration_ns) FILTER (kind = 'kernel') AS kernel_ns
    FROM trace.critical_sums
), k AS (
    SELECT {include path_name} AS name, sum(count) AS n, sum(duration_ns) AS ns
    FROM trace.critical_sums
    WHERE kind = 'kernel'
    GROUP BY 1
    ORDER BY ns DESC
    LIMIT 1
), p AS (
    FROM {include path_places rows=kind='kernel'}
), w AS (
    SELECT coalesce(sum(duration_ns), 0) AS waited
    FROM device.waits
)
SELECT
    t.kernel_ns,
    t.ns,
    k.name,
    k.n,
    k.ns,
    0,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM t, k, w
WHERE w.waited <= 0.2 * t.ns AND (SELECT count(*) FROM kymo.imports) > 0
