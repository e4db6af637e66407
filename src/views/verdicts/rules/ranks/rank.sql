-- threshold: 0.05
-- weight: 1.0
-- needs: dist.collectives
-- sentence: Rank {name} is late: the other ranks wait for it for {share} of the time ({won} of
--     {whole}).
-- evidence: it is last at {count} collective{s}, usually {a} after the median rank; all others
--     together waited {b}
-- advice: check what this rank does before its collectives, its data and its machine
-- tab: timeline
-- query: FROM dist.late
--
-- Late is who arrives last: at each collective, the time from the median arrival to the last is
-- charged to that rank. Of healthy ranks each is last now and then, so that one is named only if it
-- causes more than half of all lateness beyond its share of the ranks, and not by a few
-- collectives: (sum of lateness)² / (sum of its squares) is at least 5. The first collective of
-- each group does not count, since ranks start at different times. The whole is from the first
-- collective to the last. The place is by stack samples, or else what the rank did on the critical
-- path. The length of steps says nothing: in a synchronous job all are equal.
WITH
{include dist_arrivals},
c AS (
    SELECT *
    FROM lateness
    QUALIFY seq > min(seq) OVER (PARTITION BY group_name)
),
r AS (
    SELECT
        rank,
        host,
        pid,
        count(*) * any_value(e.blocks) AS n,
        sum(late_ns)::DOUBLE * any_value(e.blocks) AS cost,
        sum(waited_ns)::DOUBLE * any_value(e.blocks) AS waited,
        median(late_ns) AS usual,
        sum(late_ns)::DOUBLE ^ 2 / nullif(sum(late_ns::DOUBLE ^ 2), 0) AS spread
    FROM c, every e
    GROUP BY rank, host, pid
),
w AS (
    SELECT
        count(DISTINCT rank) AS ranks,
        max(coalesce(end_ns, arrival_ns)) - min(arrival_ns) AS span,
        count(DISTINCT host) AS hosts
    FROM arrivals
),
l AS (
    SELECT rank
    FROM r
    ORDER BY cost DESC
    LIMIT 1
),
own AS (
    SELECT {include path_place name=if(kind='host',name,NULL)} AS place, duration_ns AS weight
    FROM trace.critical_sums
    WHERE kind = 'host' AND rank = (SELECT rank FROM l)
),
p AS (
    FROM {include top_place from=own}
)
SELECT
    r.cost,
    w.span,
    r.rank || CASE WHEN w.hosts > 1 THEN ' on host ' || r.host ELSE '' END,
    r.n,
    r.usual,
    r.waited,
    coalesce(d.place, (SELECT place FROM p)) AS place,
    coalesce(d.place_share, (SELECT share FROM p)) AS place_share
FROM r
CROSS JOIN w
JOIN dist.late d
    ON d.rank = r.rank AND d.pid = r.pid AND d.host IS NOT DISTINCT FROM r.host
WHERE r.spread >= 5
    AND r.cost >= (SELECT sum(cost) FROM r) * (0.5 + 0.5 / w.ranks)
ORDER BY r.cost DESC
LIMIT 1
