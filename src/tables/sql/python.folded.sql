-- Python samples by stack, as flame graphs take them.
--
-- stack    VARCHAR  functions from the outermost in, parted by ;
-- samples  BIGINT   how often it was seen, by period
-- running  BIGINT   how often of those the thread ran
-- pid      INTEGER  the process
-- thread   VARCHAR  the thread's name
SELECT
    stack,
    samples,
    running,
    pid,
    thread
FROM (SELECT l.folded AS stack, sum(t.samples)::BIGINT AS samples, sum(t.running)::BIGINT AS
        running, t.pid, t.thread FROM (SELECT pid AS collector, node, target_pid AS pid,
        thread_name AS thread, count(*) AS samples, count(*) FILTER (state = ascii('R')) AS running
        FROM kymo_scan('python.samples') WHERE cause = 'period' GROUP BY ALL) t JOIN kymo_leaves()
        l ON l.collector = t.collector AND l.node = t.node GROUP BY ALL ORDER BY samples DESC)
