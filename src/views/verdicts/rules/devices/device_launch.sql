-- threshold: 0.10
-- weight: 0.7
-- sentence: The program is bound by launches: the host spends {share} of the time ({won} of
--     {whole}) in calls that launch work for {name}, which is idle meanwhile.
-- evidence: {count} launches of {a} each, for operations of {b} each; mostly {which}
-- advice: launch less: CUDA graphs, torch.compile, fused optimizers (fused=True), larger batches
-- tab: devices
-- query: FROM device.launch_stats ORDER BY call_ns DESC
--
-- At least 1,000 launches; most operations are shorter than the calls that launch them; the device
-- is idle for at least a third of the time. The gain is at most the idle time on the critical path
-- that has no other cause: loading data, waits.
WITH l AS (
    SELECT
        host,
        pid,
        device,
        sum(launches) AS n,
        sum(call_ns) AS call_ns,
        sum(device_ns) AS device_ns,
        sum(short) AS short,
        arg_max(call, call_ns) AS call
    FROM device.launch_stats
    GROUP BY host, pid, device
), p AS (
    FROM {include path_places rows=kind='launch'}
)
SELECT
    least(l.call_ns, (
        SELECT sum(i.idle_ns)
        FROM device.idle_sums i
        WHERE i.pid = l.pid AND i.device = l.device AND i.cause IN ('launch', 'host')
    )),
    b.total_ns,
    l.device,
    l.n,
    l.call_ns / l.n,
    l.device_ns / l.n,
    l.call,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM l
JOIN device.breakdown b ON b.host = l.host AND b.pid = l.pid AND b.device = l.device
WHERE l.n >= 1000 AND l.short > 0.5 * l.n AND b.idle_ns > 0.33 * b.total_ns
ORDER BY l.call_ns DESC
LIMIT 1
