-- What is wrong with a job of many ranks, in the SQL that DuckDB and Spark both take. Each query returns ranks.

-- absent
SELECT rank FROM dist.ranks WHERE pid IS NULL ORDER BY rank;

-- hung
WITH front AS (SELECT group_name, max(seq) AS seq FROM dist.collectives GROUP BY group_name),
here AS (SELECT group_name, rank, max(seq) AS seq FROM dist.collectives GROUP BY group_name, rank)
SELECT h.rank FROM here h JOIN front f ON f.group_name = h.group_name WHERE h.seq < f.seq ORDER BY h.rank;

-- straggler
SELECT rank FROM dist.late WHERE times_last > 0.3 * collectives AND median_ns > 1000000 ORDER BY rank;

-- leak
SELECT rank FROM host.process GROUP BY rank HAVING regr_slope(rss_bytes, ts_ns) * 1e9 > 1e6 ORDER BY rank;

-- clocks
SELECT min(rank) AS rank FROM dist.clocks WHERE greatest(offset_ns, 0 - offset_ns) > 1000000 + error_ns GROUP BY host ORDER BY rank;

-- losses
SELECT rank FROM kymo.flushes GROUP BY rank HAVING sum(lost) + sum(dropped) > 0 ORDER BY rank;
