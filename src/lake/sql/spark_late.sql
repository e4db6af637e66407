-- dist.late in Spark, without the place by stack samples.
WITH
arrivals AS (
    SELECT
        rank,
        host,
        pid,
        group_name,
        seq,
        arrival_ns,
        count(*) OVER (PARTITION BY group_name, seq) AS present,
        max(arrival_ns) OVER (PARTITION BY group_name, seq) AS last_ns
    FROM dist.collectives
    WHERE seq IS NOT NULL AND NOT p2p AND arrival_ns IS NOT NULL AND rank IS NOT NULL
),
lateness AS (
    SELECT
        group_name,
        seq,
        max_by(rank, arrival_ns) AS rank,
        max_by(host, arrival_ns) AS host,
        max_by(pid, arrival_ns) AS pid,
        max(arrival_ns) - percentile_disc(0.5) WITHIN GROUP (ORDER BY arrival_ns) AS late_ns,
        sum(last_ns - arrival_ns) AS waited_ns
    FROM arrivals
    WHERE present > 1
    GROUP BY group_name, seq
),
members AS (
    SELECT rank, host, pid, count(*) AS collectives
    FROM arrivals
    WHERE present > 1
    GROUP BY rank, host, pid
)
SELECT
    g.rank,
    g.host,
    g.pid,
    count(l.seq) AS times_last,
    max(g.collectives) AS collectives,
    CAST(coalesce(sum(l.late_ns), 0) AS BIGINT) AS cost_ns,
    CAST(coalesce(sum(l.waited_ns), 0) AS BIGINT) AS waited_ns,
    CAST(bround(median(l.late_ns)) AS BIGINT) AS median_ns
FROM members g
LEFT JOIN lateness l ON l.rank = g.rank AND l.host <=> g.host AND l.pid = g.pid
GROUP BY g.rank, g.host, g.pid
