-- dist.collectives of a job of a lake. {files}: the calls that each host has recorded; the wait for
-- the last rank is computed here, over all hosts. {moved}: the columns of times, on the clocks that
-- the table of aligned clocks has.
WITH
known AS NOT MATERIALIZED (
    SELECT * REPLACE ({moved})
    FROM (
        {files}
    ) c
    {clocks}
),
last AS (
    SELECT group_name, seq, max(arrival_ns) AS last_ns
    FROM known
    WHERE seq IS NOT NULL AND NOT p2p
    GROUP BY group_name, seq
)
SELECT
    k.rank,
    k.group_name,
    k.seq,
    op,
    bytes,
    dtype,
    step,
    enqueue_ns,
    start_ns,
    end_ns,
    l.last_ns - k.arrival_ns AS wait_ns,
    zone,
    peer,
    p2p,
    async,
    failed,
    arrival_ns,
    group_size,
    members,
    correlation,
    pid,
    tid,
    thread,
    host,
    state
FROM known k
-- With NOT k.p2p as a condition of its own, DuckDB would compare every row with every other.
LEFT JOIN last l
    ON l.group_name IS NOT DISTINCT FROM k.group_name
    AND l.seq = CASE WHEN NOT k.p2p THEN k.seq END
