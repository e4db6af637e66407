-- threshold: 0.80
-- weight: 0.15
-- sentence: The device is the bottleneck: {name} was busy for {share} of the time the device was in
--     use ({won} of {whole}), mostly with {which}, and the host waited for it.
-- evidence: the host waited for {a}; {which} took {b} in {count} run{s}
-- advice: make {which} cheaper or the work smaller, or use a faster device; a faster host does not
--     help
-- tab: devices
-- query: SELECT name, count(*), sum(end_ns - start_ns) FROM device.ops
--     WHERE kind <> 'execution' GROUP BY 1 ORDER BY 3 DESC
--
-- From 80 % on, the rest is no more than the gaps that any program has. If the host waits for less
-- than a fifth of that time, both are about equally busy and a faster device alone gains little. A
-- queue must be busy for a fifth of the run, as a region must be. The execution of a model counts
-- as a wait of the host: the call returns when it ends. A queue of collectives is no bottleneck of
-- the device: see device_comm.
WITH q AS (
    SELECT *
    FROM device.queues
    ORDER BY busy_ns DESC
    LIMIT 1
), w AS (
    SELECT max(ns) AS waited
    FROM (
        SELECT sum(ns) AS ns
        FROM (
            SELECT host, pid, tid, device, duration_ns AS ns
            FROM device.waits
            UNION ALL
            SELECT host, pid, tid, device, end_ns - start_ns
            FROM device.ops
            WHERE kind = 'execution'
        )
        SEMI JOIN q USING (host, pid, device)
        GROUP BY tid
    )
), k AS (
    SELECT name, count(*) AS n, sum(end_ns - start_ns) AS ns
    FROM device.ops
    SEMI JOIN q USING (host, pid, device, queue)
    WHERE kind NOT IN ('execution', 'module')
    GROUP BY 1
    ORDER BY ns DESC NULLS LAST
    LIMIT 1
)
SELECT
    busy_ns,
    busy_ns + idle_ns,
    queue,
    k.n,
    least(waited, busy_ns + idle_ns),
    k.ns,
    {include kernel_name name=k.name},
    (SELECT place FROM {include path_places rows=kind='kernel'}) AS place,
    (SELECT share FROM {include path_places rows=kind='kernel'}) AS place_share
FROM q, w, k
WHERE busy_ns > 0.2 * {run_ns}
    AND waited > 0.2 * (busy_ns + idle_ns)
    AND NOT regexp_matches(k.name, '^(nccl|rccl)')
