-- dist.collectives in Spark; see lake_collectives.sql.
SELECT
    k.rank,
    k.group_name,
    k.seq,
    k.op,
    k.bytes,
    k.dtype,
    k.step,
    k.enqueue_ns,
    k.start_ns,
    k.end_ns,
    l.last_ns - k.arrival_ns AS wait_ns,
    k.zone,
    k.peer,
    k.p2p,
    k.async,
    k.failed,
    k.arrival_ns,
    k.group_size,
    k.members,
    k.correlation,
    k.pid,
    k.tid,
    k.thread,
    k.host,
    k.state
FROM dist.collectives_rows k
LEFT JOIN (
    SELECT group_name, seq, max(arrival_ns) AS last_ns
    FROM dist.collectives_rows
    WHERE seq IS NOT NULL AND NOT p2p
    GROUP BY group_name, seq
) l
    ON l.group_name <=> k.group_name
    AND l.seq = CASE WHEN NOT k.p2p THEN k.seq END
