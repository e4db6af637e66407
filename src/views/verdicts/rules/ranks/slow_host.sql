-- threshold: 0.05
-- weight: 0.92
-- needs: dist.collectives
-- sentence: All ranks of host {name} are late: the other hosts wait for them for {share} of the
--     time ({won} of {whole}).
-- evidence: its {count} ranks arrive {a} after the median of the others
-- advice: compare this host with others: its clock speed, its temperature, its other programs, its
--     network
-- tab: timeline
-- query: SELECT host, rank, cost_ns, times_last FROM dist.late
--
-- A host of several ranks, of which even the first arrives after the median rank of the other hosts
-- at four of five collectives. A single late rank is not a slow host. The first collective of a
-- group does not count.
WITH
{include dist_arrivals},
a AS (
    SELECT group_name, seq, rank, host, arrival_ns, end_ns
    FROM arrivals
    WHERE present > 1
    QUALIFY seq > min(seq) OVER (PARTITION BY group_name)
),
h AS (
    SELECT
        group_name,
        seq,
        host,
        count(*) AS ranks,
        min(arrival_ns) AS first_ns,
        max(arrival_ns) AS last_ns
    FROM a
    GROUP BY ALL
),
o AS (
    SELECT
        h.*,
        (
            SELECT quantile_disc(a.arrival_ns, 0.5)
            FROM a
            WHERE a.group_name = h.group_name AND a.seq = h.seq AND a.host <> h.host
        ) AS others_ns
    FROM h
),
s AS (
    SELECT
        host,
        max(ranks) AS ranks,
        count(*) AS n,
        avg((first_ns > others_ns)::INT) AS later,
        sum(greatest(first_ns - others_ns, 0))::DOUBLE AS cost,
        median(first_ns - others_ns) AS usual
    FROM o
    WHERE others_ns IS NOT NULL
    GROUP BY host
),
w AS (
    SELECT max(coalesce(end_ns, arrival_ns)) - min(arrival_ns) AS span
    FROM arrivals
)
SELECT s.cost, w.span, s.host, s.ranks, s.usual, 0
FROM s, w
WHERE s.ranks >= 2 AND s.n >= 10 AND s.later >= 0.8
ORDER BY s.cost DESC
LIMIT 1
