-- Python samples by stack, in the format of flame graph tools.
--
-- stack    VARCHAR  functions separated by ; with the outermost first
-- samples  BIGINT   number of periodic samples
-- running  BIGINT   number of those in which the thread was running
-- pid      INTEGER  process ID
-- thread   VARCHAR  thread name
-- time_ns  BIGINT   time that the samples stand for; NULL in recordings of an older version
WITH counts AS (
    SELECT
        pid AS collector,
        node,
        target_pid AS pid,
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
    sum(c.time_ns)::BIGINT AS time_ns
FROM counts c
JOIN kymo_leaves() l ON l.collector = c.collector AND l.node = c.node
GROUP BY l.folded, c.pid, c.thread
ORDER BY coalesce(sum(c.time_ns), 0) DESC, sum(c.samples) DESC
