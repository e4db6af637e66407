-- Python samples by stack, in the format of flame graph tools.
--
-- stack    VARCHAR  functions separated by ; with the outermost first
-- samples  BIGINT   number of periodic samples
-- running  BIGINT   number of those in which the thread was running
-- pid      INTEGER  process ID
-- thread   VARCHAR  thread name
-- time_ns  BIGINT   time that the samples stand for; NULL in recordings of an older version
-- rank     INTEGER  rank of the process; NULL outside a distributed run
-- host     VARCHAR  host name
WITH counts AS (
    SELECT
        process_id AS collector_id,
        node,
        target_pid AS pid,
        target_rank AS rank,
        host,
        thread_name AS thread,
        count(*) AS samples,
        count(*) FILTER (state = ascii('R')) AS running,
        sum(weight_ns) AS time_ns
    FROM kymo_scan('python.samples')
    WHERE cause = 'period'
    GROUP BY ALL
)
SELECT
    l.folded AS stack,
    sum(c.samples)::BIGINT AS samples,
    sum(c.running)::BIGINT AS running,
    c.pid,
    c.thread,
    sum(c.time_ns)::BIGINT AS time_ns,
    c.rank,
    c.host
FROM counts c
JOIN kymo_leaves() l ON l.collector_id = c.collector_id AND l.node = c.node
GROUP BY l.folded, c.pid, c.thread, c.rank, c.host
ORDER BY coalesce(sum(c.time_ns), 0) DESC, sum(c.samples) DESC
