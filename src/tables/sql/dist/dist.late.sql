-- Ranks that others waited for, by arrival at collectives.
--
-- rank         INTEGER  global rank
-- host         VARCHAR  host name
-- pid          INTEGER  process ID
-- times_last   BIGINT   number of collectives at which it came last
-- collectives  BIGINT   number of collectives of its groups
-- cost_ns      BIGINT   sum of the time between the median arrival and its own, where it came last
-- waited_ns    BIGINT   sum of the time that the other ranks waited for it
-- median_ns    BIGINT   median of its lateness, where it came last
-- place        VARCHAR  function and line of the program in which it spent more time than other
--                       ranks between collectives, by stack samples; NULL if not known
-- place_share  DOUBLE   share of its time between collectives, 0 to 1
--
-- A rank is late at a collective if it arrives last: the time from the median arrival to its own is
-- charged to it, without what it spent in sends, receives and other groups since the collective
-- before, beyond the median of the ranks. Step durations say nothing about it: in a synchronous job
-- all of them are equal. Of a job with more than 1,048,576 rows of dist.collectives,
-- blocks of 64 consecutive collectives at equal distances are read, at most so many rows; numbers
-- and sums are multiplied by the distance.
WITH
{include dist_arrivals},
spans AS MATERIALIZED (
    SELECT rank, host, pid, before_ns AS from_ns, arrival_ns AS to_ns
    FROM arrivals
    WHERE present > 1 AND before_ns IS NOT NULL
),
sampled AS (
    SELECT s.rank, s.host, s.pid, p.place, sum(coalesce(nullif(p.weight_ns, 0), 1)) AS weight
    FROM (
        SELECT ts_ns, host, pid, tid, place, weight_ns
        FROM kymo_samples()
        WHERE cause = 'period' AND tid = pid
    ) p
    ASOF JOIN spans s
        ON s.host = p.host AND s.pid = p.pid AND p.ts_ns >= s.from_ns
    WHERE p.ts_ns <= s.to_ns
    GROUP BY s.rank, s.host, s.pid, p.place
),
more AS (
    SELECT
        *,
        weight - (sum(weight) OVER (PARTITION BY place) - weight)
            / greatest((SELECT count(DISTINCT rank) FROM spans) - 1, 1) AS excess,
        weight / sum(weight) OVER (PARTITION BY rank, host, pid) AS share
    FROM sampled
),
places AS (
    SELECT
        rank,
        host,
        pid,
        arg_max(place, excess) FILTER (place IS NOT NULL AND excess > 0) AS place,
        arg_max(share, excess) FILTER (place IS NOT NULL AND excess > 0) AS share
    FROM more
    GROUP BY rank, host, pid
),
groups AS (
    SELECT rank, host, pid, count(*) AS collectives
    FROM arrivals
    WHERE present > 1
    GROUP BY rank, host, pid
)
SELECT
    g.rank,
    g.host,
    g.pid,
    count(l.seq) * any_value(e.blocks) AS times_last,
    any_value(g.collectives * e.blocks) AS collectives,
    (coalesce(sum(l.late_ns), 0) * any_value(e.blocks))::BIGINT AS cost_ns,
    (coalesce(sum(l.waited_ns), 0) * any_value(e.blocks))::BIGINT AS waited_ns,
    median(l.late_ns)::BIGINT AS median_ns,
    any_value(p.place) AS place,
    round(any_value(p.share), 4) AS place_share
FROM groups g
CROSS JOIN every e
LEFT JOIN lateness l ON l.rank = g.rank AND l.host IS NOT DISTINCT FROM g.host AND l.pid = g.pid
LEFT JOIN places p ON p.rank = g.rank AND p.host IS NOT DISTINCT FROM g.host AND p.pid = g.pid
GROUP BY g.rank, g.host, g.pid
ORDER BY cost_ns DESC, g.rank
