-- The ranks of the collective that a rank ({ranks}) reached at {from}, as far as that is known to
-- {slack} ns: the last to arrive first.
WITH one AS (
    SELECT group_name, seq, p2p
    FROM dist.collectives
    WHERE {ranks} AND seq IS NOT NULL AND abs(arrival_ns - {from}) <= {slack}
    ORDER BY abs(arrival_ns - {from})
    LIMIT 1
)
SELECT c.rank, c.host, c.group_name, c.seq, c.op, c.bytes, c.arrival_ns, c.end_ns, c.wait_ns
FROM dist.collectives c
JOIN one
    ON c.group_name IS NOT DISTINCT FROM one.group_name
    AND c.seq = one.seq
    AND c.p2p = one.p2p
WHERE c.arrival_ns IS NOT NULL
ORDER BY c.arrival_ns DESC, c.rank
LIMIT 4096
