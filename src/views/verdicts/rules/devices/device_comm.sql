-- threshold: 0.10
-- weight: 0.4
-- sentence: Communication is exposed: {which} communicated for {share} of the time ({won} of
--     {whole}) while it computed nothing.
-- evidence: {a} of communication[; {b} is waiting for other ranks, mostly at {name}]
-- advice: overlap it with computation: smaller gradient buckets, reduce while backward runs,
--     prefetch parameters; if one rank is late, the others wait here
-- tab: devices
-- query: FROM device.overlap ORDER BY exposed_ns DESC
--
-- The device whose communication is exposed for longest. The part that waits for other ranks is the
-- time from its own arrival at the collectives to the last one; less communication does not help.
WITH o AS (
    SELECT o.*, b.total_ns
    FROM device.overlap o
    JOIN device.breakdown b ON b.host = o.host AND b.pid = o.pid AND b.device = o.device
    ORDER BY o.exposed_ns DESC
    LIMIT 1
), k AS (
    SELECT name, total_ns
    FROM device.kernels
    SEMI JOIN o USING (host, pid, device)
    WHERE class = 'communication'
    ORDER BY total_ns DESC
    LIMIT 1
), w AS (
    SELECT sum(c.wait_ns) AS wait_ns
    FROM dist.collectives c
    SEMI JOIN o USING (pid)
), p AS (
    FROM {include path_places rows=kind='collective'}
)
SELECT
    o.exposed_ns,
    o.total_ns,
    CASE WHEN w.wait_ns > 0 THEN {include kernel_name name=k.name} END,
    1,
    o.communication_ns,
    w.wait_ns,
    o.device,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM o, k, w
