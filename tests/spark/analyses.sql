-- Fourteen analyses of a job of many ranks, in the SQL that DuckDB and Spark both take.

-- 01 step percentiles by rank
SELECT rank, count(*) AS steps, percentile_cont(0.5) WITHIN GROUP (ORDER BY duration_ns) AS p50_ns,
    percentile_cont(0.99) WITHIN GROUP (ORDER BY duration_ns) AS p99_ns
FROM trace.steps GROUP BY rank ORDER BY p99_ns DESC, rank LIMIT 10;

-- 02 straggler by arrival
WITH c AS (SELECT c.rank, c.group_name, c.seq, c.arrival_ns - k.offset_ns AS arrival_ns FROM dist.collectives c
    JOIN dist.clocks k ON k.rank = c.rank WHERE c.end_ns IS NOT NULL),
m AS (SELECT group_name, seq, max_by(rank, arrival_ns) AS last_rank, max(arrival_ns) - median(arrival_ns) AS late_ns FROM c GROUP BY group_name, seq)
SELECT last_rank, count(*) AS times, round(sum(late_ns) / 1e6) AS waited_ms FROM m GROUP BY last_rank ORDER BY times DESC, last_rank LIMIT 5;

-- 03 busiest place by rank
WITH m AS (SELECT rank, place, sum(weight_ns) AS s FROM python.samples WHERE place IS NOT NULL GROUP BY rank, place),
f AS (SELECT place, median(s) AS usual FROM m GROUP BY place)
SELECT m.rank, m.place, m.s / f.usual AS times FROM m JOIN f ON f.place = m.place WHERE f.usual > 0 ORDER BY times DESC, m.rank, m.place LIMIT 5;

-- 04 utilisation by rank
WITH w AS (SELECT rank, start_ns, end_ns, max(end_ns) OVER (PARTITION BY rank ORDER BY start_ns, end_ns
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS free_ns FROM dist.collectives WHERE end_ns IS NOT NULL)
SELECT rank, CAST(sum(greatest(0, end_ns - greatest(start_ns, coalesce(free_ns, start_ns)))) AS DOUBLE) / (max(end_ns) - min(start_ns)) AS utilisation
FROM w GROUP BY rank ORDER BY utilisation, rank LIMIT 10;

-- 05 top regions
SELECT source, name, CAST(sum(count) AS BIGINT) AS calls, CAST(sum(self_ns) AS BIGINT) AS self_ns, max(max_ns) AS worst_ns
FROM trace.regions GROUP BY source, name ORDER BY self_ns DESC, name LIMIT 10;

-- 06 absent and hung ranks
WITH front AS (SELECT group_name, max(seq) AS seq FROM dist.collectives GROUP BY group_name),
here AS (SELECT group_name, rank, max(seq) AS seq FROM dist.collectives GROUP BY group_name, rank)
SELECT r.rank, 'wrote nothing' AS what FROM dist.ranks r WHERE r.pid IS NULL
UNION ALL SELECT h.rank, concat('not in ', h.group_name, ' ', CAST(f.seq AS VARCHAR(20))) AS what FROM here h JOIN front f ON f.group_name = h.group_name
WHERE h.seq < f.seq ORDER BY rank;

-- 07 growth by rank
SELECT rank, round(regr_slope(duration_ns, step), 2) AS ns_per_step, min_by(duration_ns, step) AS early, max_by(duration_ns, step) AS late
FROM trace.steps GROUP BY rank ORDER BY ns_per_step DESC, rank LIMIT 5;

-- 08 loss arithmetic
SELECT s.table_name, count(DISTINCT s.rank) AS ranks, CAST(sum(s.emitted) AS BIGINT) AS emitted, CAST(sum(s.kept) AS BIGINT) AS kept,
    CAST(sum(s.overwritten) AS BIGINT) AS overwritten, CAST(sum(s.dropped) AS BIGINT) AS dropped,
    sum(CASE WHEN s.emitted = s.kept + s.overwritten + s.dropped THEN 0 ELSE 1 END) AS wrong
FROM kymo.streams s GROUP BY s.table_name ORDER BY s.table_name;

-- 09 p99 timeline
SELECT step, median(duration_ns) AS p50_ns, percentile_cont(0.99) WITHIN GROUP (ORDER BY duration_ns) AS p99_ns, max(duration_ns) AS worst_ns
FROM trace.steps GROUP BY step ORDER BY step;

-- 10 host mates joined
WITH b AS (SELECT host, rank, step, sum(duration_ns) AS s FROM trace.steps GROUP BY host, rank, step)
SELECT x.rank AS rank, y.rank AS mate, avg(x.s / y.s) AS ratio FROM b x JOIN b y ON x.host = y.host AND x.step = y.step AND x.rank <> y.rank
GROUP BY x.rank, y.rank ORDER BY ratio DESC, rank, mate LIMIT 10;

-- 11 samples by place
SELECT place, count(*) AS samples, CAST(sum(weight_ns) AS BIGINT) AS ns FROM python.samples GROUP BY place ORDER BY samples DESC, place LIMIT 10;

-- 12 sudden steps
SELECT rank, step, duration_ns, before FROM (SELECT rank, step, duration_ns, avg(duration_ns) OVER (PARTITION BY rank ORDER BY step
    ROWS BETWEEN 10 PRECEDING AND 1 PRECEDING) AS before FROM trace.steps) t
WHERE duration_ns > 1.02 * before ORDER BY duration_ns / before DESC, rank, step LIMIT 10;

-- 13 waits by operation
SELECT op, count(*) AS n, CAST(sum(wait_ns) AS BIGINT) AS ns, percentile_disc(0.9) WITHIN GROUP (ORDER BY wait_ns) AS p90 FROM dist.collectives
GROUP BY op ORDER BY ns DESC, op LIMIT 10;

-- 14 the slowest three of each step
SELECT step, n, rank FROM (SELECT step, rank, row_number() OVER (PARTITION BY step ORDER BY duration_ns DESC, rank) AS n FROM trace.steps) t
WHERE n <= 3 ORDER BY step, n LIMIT 15;
