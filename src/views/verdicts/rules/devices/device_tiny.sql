-- threshold: 0.10
-- weight: 0.7
-- sentence: Device operations are tiny: the gaps between those of {name} add up to {share} of the
--     run ({won}).
-- evidence: {count} operations of {a} at the median, {b} between two of them
-- advice: fuse kernels, batch more into one, or record the sequence once and launch it as a whole
-- tab: devices
-- query: SELECT name, count(*), median(end_ns - start_ns) FROM device.ops GROUP BY 1
--
-- At least 1,000 operations with a median below 20 µs. Longer gaps than 1 ms have another cause
-- than the number of operations.
WITH q AS (
    SELECT *
    FROM device.queues
    WHERE ops >= 1000 AND p50_ns < 20000
    ORDER BY ops DESC
    LIMIT 1
), g AS (
    SELECT sum(duration_ns) AS apart_ns, count(*) AS gaps
    FROM device.gaps
    SEMI JOIN q USING (pid, device, queue)
    WHERE duration_ns < 1000000
), p AS (
    FROM {include path_places rows=kind<>'collective'}
)
SELECT
    g.apart_ns,
    {run_ns},
    q.queue,
    q.ops,
    q.p50_ns,
    g.apart_ns / greatest(g.gaps, 1),
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM q, g
