-- threshold: 0.20
-- weight: 0.8
-- needs: dist.collectives
-- sentence: Communication is not hidden: collectives take {share} of the time after all ranks have
--     arrived ({won} of {whole}).
-- evidence: {count} collectives, mostly {which}, {a} each; no rank computes meanwhile
-- advice: overlap collectives with computation (async_op, DistributedDataParallel's buckets), or
--     send less: larger accumulation steps, lower precision
-- tab: timeline
-- query: SELECT op, count(*), sum(end_ns - arrival_ns - wait_ns) FROM dist.collectives GROUP BY op
--
-- The time from the last arrival to the end of collectives whose caller waits for them, of the mean
-- rank. Waiting for a late rank is not communication. Collectives of devices have a verdict of
-- their own.
WITH
c AS (
    SELECT rank, op, greatest(end_ns - arrival_ns - wait_ns, 0)::DOUBLE AS ns, arrival_ns, end_ns
    FROM dist.collectives
    WHERE NOT p2p AND NOT async AND correlation IS NULL AND wait_ns IS NOT NULL
        AND end_ns IS NOT NULL
)
SELECT
    sum(ns) / nullif(count(DISTINCT rank), 0),
    max(end_ns) - min(arrival_ns),
    '',
    (count(*) / nullif(count(DISTINCT rank), 0))::BIGINT,
    median(ns),
    0,
    mode(op)
FROM c
HAVING count(*) >= 20
