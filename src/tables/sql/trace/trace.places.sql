-- The places of the program's own code, by the time that stack samples found there.
--
-- function    VARCHAR  function; all of its lines count together
-- file        VARCHAR  file of the function
-- line        INTEGER  line with most of the self time, or else of the total time
-- source      VARCHAR  sampler that found it: python or native
-- self_ns     BIGINT   time in the function itself, and in what it calls outside of the program's
--                      own code; NULL in recordings of an older version
-- total_ns    BIGINT   time in the function and in all that it calls; recursion counts once
-- running_ns  BIGINT   part of self_ns on a CPU
-- waiting_ns  BIGINT   part of self_ns not on a CPU
-- samples     BIGINT   number of samples of self_ns
-- share       DOUBLE   self_ns as a part of all sampled time, 0 to 1, of all threads and processes
-- pid         INTEGER  process ID
-- rank        INTEGER  rank of the process; NULL outside a distributed run
-- host        VARCHAR  host name
--
-- A thread that waits counts as one that runs. Own code is what is not the
-- standard library, an installed package or kymo; $KYMO_OWN_CODE names more directories.
WITH s AS MATERIALIZED (
    FROM {include place_samples}
), by_line AS (
    SELECT
        source,
        host,
        pid,
        function,
        file,
        line,
        sum(time_ns) AS total_ns,
        sum(time_ns) FILTER (self) AS self_ns,
        sum(time_ns) FILTER (self AND running) AS running_ns,
        sum(samples) FILTER (self) AS samples,
        sum(weight) AS total,
        coalesce(sum(weight) FILTER (self), 0) AS self_weight
    FROM s
    WHERE function IS NOT NULL
    GROUP BY ALL
), by_place AS (
    SELECT
        source,
        host,
        pid,
        function,
        file,
        CASE
            WHEN max(self_weight) > 0 THEN arg_max(line, self_weight)
            ELSE arg_max(line, total)
        END AS line,
        sum(total_ns) AS total_ns,
        sum(self_ns) AS self_ns,
        sum(running_ns) AS running_ns,
        sum(samples) AS samples,
        sum(self_weight) AS self_weight,
        sum(total) AS total
    FROM by_line
    GROUP BY ALL
)
SELECT
    b.function,
    b.file,
    nullif(b.line, 0)::INTEGER AS line,
    b.source,
    CASE WHEN b.total_ns IS NOT NULL THEN coalesce(b.self_ns, 0) END::BIGINT AS self_ns,
    b.total_ns::BIGINT AS total_ns,
    CASE WHEN b.total_ns IS NOT NULL THEN coalesce(b.running_ns, 0) END::BIGINT AS running_ns,
    CASE WHEN b.total_ns IS NOT NULL
        THEN coalesce(b.self_ns, 0) - coalesce(b.running_ns, 0)
    END::BIGINT AS waiting_ns,
    coalesce(b.samples, 0)::BIGINT AS samples,
    coalesce(b.self_weight / (SELECT nullif(sum(weight), 0) FROM s WHERE self), 0)::DOUBLE AS share,
    b.pid,
    coalesce(p.rank, c.rank) AS rank,
    b.host
FROM by_place b
LEFT JOIN (
    SELECT host, pid, any_value(rank) AS rank
    FROM kymo_meta('processes')
    GROUP BY host, pid
) p ON p.host = b.host AND p.pid = b.pid
LEFT JOIN (
    SELECT host, any_value(rank) AS rank
    FROM kymo_meta('processes')
    WHERE role = 'collector'
    GROUP BY host
    HAVING count(DISTINCT rank) = 1
) c ON c.host = b.host
ORDER BY b.self_weight DESC, b.total DESC, b.function, b.pid
