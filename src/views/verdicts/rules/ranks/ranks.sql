-- threshold: 0.05
-- weight: 1.0
-- needs: dist.collectives
-- sentence: Ranks {name} are late: the other ranks wait for them for {share} of the time ({won} of
--     {whole}).
-- evidence: they are last at {count} collective{s}, usually {a} after the median rank; all others
--     together waited {b}
-- advice: check what these ranks do before their collectives, their data and their machines
-- tab: timeline
-- query: FROM dist.late
--
-- As the verdict rank, where two or three ranks, fewer than half, cause most of the lateness and no
-- single one does. The place is what they did on the critical path.
WITH
{include dist_arrivals},
c AS (
    SELECT *
    FROM lateness
    QUALIFY seq > min(seq) OVER (PARTITION BY group_name)
),
w AS (
    SELECT
        count(DISTINCT rank) AS ranks,
        max(coalesce(end_ns, arrival_ns)) - min(arrival_ns) AS span
    FROM arrivals
),
r AS (
    SELECT
        rank,
        count(*) * any_value(e.blocks) AS n,
        sum(late_ns)::DOUBLE * any_value(e.blocks) AS cost,
        sum(waited_ns)::DOUBLE * any_value(e.blocks) AS waited,
        median(late_ns) AS usual,
        sum(late_ns)::DOUBLE ^ 2 / nullif(sum(late_ns::DOUBLE ^ 2), 0) AS spread,
        row_number() OVER (ORDER BY sum(late_ns) DESC, rank) AS place,
        sum(sum(late_ns)) OVER (ORDER BY sum(late_ns) DESC, rank) / sum(sum(late_ns)) OVER ()
            AS together
    FROM c, every e
    GROUP BY rank
),
k AS (
    SELECT min(place) AS k
    FROM r, w
    WHERE together >= 0.5 + 0.5 * place / w.ranks
),
late AS (
    SELECT r.*
    FROM r, k, w
    WHERE r.place <= k.k AND k.k BETWEEN 2 AND 3 AND k.k * 2 < w.ranks
),
own AS (
    SELECT {include path_place name=if(kind='host',name,NULL)} AS place, duration_ns AS weight
    FROM trace.critical_sums
    WHERE kind = 'host' AND rank IN (SELECT rank FROM late)
),
p AS (
    FROM {include top_place from=own}
)
SELECT
    sum(cost),
    any_value(w.span),
    CASE WHEN count(*) > 2 THEN min(rank) || ', ' ELSE '' END
        || list(rank ORDER BY rank)[-2] || ' and ' || max(rank),
    sum(n),
    median(usual),
    sum(waited),
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM late, w
HAVING count(*) > 1 AND min(spread) >= 5
