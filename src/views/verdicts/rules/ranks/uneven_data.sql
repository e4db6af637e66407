-- threshold: 0.05
-- weight: 0.85
-- needs: trace.steps
-- sentence: Data is uneven: rank {name} waits {won} longer for its data than the median rank
--     ({share} of its steps).
-- evidence: {a} for {count} steps, the median rank {b}
-- advice: give all ranks shards of equal size and speed; compare the storage and the workers of
--     this rank with others
-- tab: timeline
-- query: SELECT rank, host, sum(data_ns) FROM trace.steps GROUP BY ALL ORDER BY 3 DESC
--
-- The phase data of all steps of a rank, beside the median rank. In a synchronous job the steps of
-- all ranks have the same length: their parts do not.
WITH
r AS (
    SELECT
        rank,
        host,
        pid,
        count(*) AS n,
        sum(data_ns)::DOUBLE AS data,
        sum(duration_ns)::DOUBLE AS whole
    FROM trace.steps
    WHERE rank IS NOT NULL AND data_ns IS NOT NULL
    GROUP BY ALL
    HAVING n >= 10
),
m AS (
    SELECT median(data) AS data, count(*) AS ranks, count(DISTINCT host) AS hosts
    FROM r
)
SELECT
    r.data - m.data,
    r.whole,
    r.rank || CASE WHEN m.hosts > 1 THEN ' on host ' || r.host ELSE '' END,
    r.n,
    r.data,
    m.data,
    d.place,
    d.place_share
FROM m, r
LEFT JOIN dist.late d ON d.rank = r.rank AND d.pid = r.pid AND d.host = r.host
WHERE m.ranks >= 2 AND r.data > 2 * m.data
ORDER BY r.data DESC
LIMIT 1
