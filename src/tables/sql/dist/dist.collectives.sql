-- Collectives and point-to-point calls of process groups, one row for each rank that took part.
--
-- rank         INTEGER  global rank; NULL if not known
-- group_name   VARCHAR  process group
-- seq          BIGINT   number of the call in its group, equal on all ranks; NULL if not known
-- op           VARCHAR  operation, for example all_reduce, broadcast, send
-- bytes        BIGINT   bytes of this rank's input
-- dtype        VARCHAR  element type
-- step         BIGINT   current step; 0 before the first
-- enqueue_ns   BIGINT   time at which the program called it; NULL if not known
-- start_ns     BIGINT   start on the worker thread or device; NULL if not known or not started
-- end_ns       BIGINT   end; NULL if it has not ended or is not known
-- wait_ns      BIGINT   time from this rank's arrival to that of the last rank; 0 for the last;
--                       NULL for point-to-point calls and if seq is not known
-- zone         VARCHAR  innermost zone of the caller, or the calling function of a
--                       flight-recorder dump; NULL if not known
-- peer         INTEGER  other rank of a point-to-point call, or root; NULL if none or not known
-- p2p          BOOLEAN  true for point-to-point calls
-- async        BOOLEAN  true if the caller did not wait for the end
-- failed       BOOLEAN  true if it ended with an error
-- arrival_ns   BIGINT   arrival of this rank: start_ns, or enqueue_ns if that is not known
-- group_size   BIGINT   number of ranks of the group; NULL if not known
-- members      VARCHAR  global ranks of the group, separated by commas; NULL if not known
-- correlation  UBIGINT  correlation number of the device operation; NULL if none
-- pid          INTEGER  process ID
-- tid          INTEGER  kernel thread ID of the caller
-- thread       VARCHAR  thread name
-- host         VARCHAR  host name
-- state        VARCHAR  scheduled (enqueued, not begun), started, completed or failed
--
-- A call that has not ended has the row of its beginning alone. The end of the first call of each
-- operation may not be known: where this rank has left a later collective of the group, the state
-- is completed.
WITH
rows AS NOT MATERIALIZED (
    SELECT
        CASE WHEN row_rank >= 0 THEN row_rank ELSE rank END AS rank,
        group_name,
        CASE WHEN (flags & {SCHEMA_COLLECTIVE_SEQ}) > 0 THEN TRY_CAST(seq AS BIGINT) END AS seq,
        op,
        TRY_CAST(bytes AS BIGINT) AS bytes,
        dtype,
        step,
        CASE WHEN (flags & {SCHEMA_COLLECTIVE_ENQUEUE}) > 0 THEN enqueue_ns END AS enqueue_ns,
        CASE WHEN (flags & {SCHEMA_COLLECTIVE_START}) > 0 THEN start_ns END AS start_ns,
        CASE WHEN (flags & {SCHEMA_COLLECTIVE_END}) > 0 THEN end_ns END AS end_ns,
        zone,
        CASE WHEN peer >= 0 THEN peer END AS peer,
        (flags & {SCHEMA_COLLECTIVE_P2P}) > 0 AS p2p,
        (flags & {SCHEMA_COLLECTIVE_ASYNC}) > 0 AS async,
        (flags & {SCHEMA_COLLECTIVE_FAILED}) > 0 AS failed,
        nullif(group_size, 0) AS group_size,
        members,
        nullif(correlation, 0) AS correlation,
        CASE
            WHEN (flags & {SCHEMA_COLLECTIVE_FAILED}) > 0 THEN 'failed'
            WHEN (flags & {COLLECTIVE_ENDED}) > 0 THEN 'completed'
            WHEN (flags & {COLLECTIVE_BEGUN}) > 0 THEN 'started'
            ELSE 'scheduled'
        END AS state,
        pid,
        tid,
        thread,
        host,
        process_id,
        call
    FROM kymo_scan('dist.collectives')
),
known AS NOT MATERIALIZED (
    SELECT *, coalesce(start_ns, enqueue_ns) AS arrival_ns
    FROM rows r
    WHERE call = 0
        OR end_ns IS NOT NULL
        OR (process_id, call) NOT IN (
            SELECT (process_id, call)
            FROM kymo_scan('dist.collectives')
            WHERE (flags & {SCHEMA_COLLECTIVE_END}) > 0 AND call > 0
        )
),
-- A join, not a window: members is long in large groups, and a window would keep it for each row.
last AS (
    SELECT group_name, seq, max(arrival_ns) AS last_ns
    FROM known
    WHERE seq IS NOT NULL AND NOT p2p
    GROUP BY group_name, seq
),
left_ranks AS (
    SELECT rank, group_name, max(seq) AS seq
    FROM rows
    WHERE end_ns IS NOT NULL AND seq IS NOT NULL AND NOT p2p
    GROUP BY rank, group_name
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
    CASE
        WHEN state IN ('scheduled', 'started') AND NOT p2p AND k.seq < g.seq THEN 'completed'
        ELSE state
    END AS state
FROM known k
-- With NOT k.p2p as a condition of its own, DuckDB would compare every row with every other.
LEFT JOIN last l
    ON l.group_name IS NOT DISTINCT FROM k.group_name
    AND l.seq = CASE WHEN NOT k.p2p THEN k.seq END
LEFT JOIN left_ranks g
    ON g.group_name IS NOT DISTINCT FROM k.group_name AND g.rank IS NOT DISTINCT FROM k.rank
