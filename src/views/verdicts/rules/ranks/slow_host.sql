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
-- The median of the other hosts by position: if `half` arrivals come before a host's first one, all
-- of these are of other hosts, and the last of them is their median. If fewer do, the host is not
-- late there. (A comparison of each host with all other ranks grows with the square of the hosts.)
a AS (
    SELECT
        group_name,
        seq,
        host,
        arrival_ns,
        present,
        row_number() OVER (PARTITION BY group_name, seq ORDER BY arrival_ns) AS place,
        rank() OVER (PARTITION BY group_name, seq ORDER BY arrival_ns) - 1 AS before
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
        min(before) AS before,
        (any_value(present) - count(*) + 1) // 2 AS half
    FROM a
    GROUP BY ALL
    HAVING half > 0
),
o AS (
    SELECT h.host, h.ranks, a.arrival_ns IS NOT NULL AS later,
        coalesce(h.first_ns - a.arrival_ns, 0) AS behind_ns
    FROM h
    LEFT JOIN a
        ON a.group_name IS NOT DISTINCT FROM h.group_name AND a.seq = h.seq
        AND a.place = CASE WHEN h.before >= h.half THEN h.half END
),
s AS (
    SELECT
        host,
        max(ranks) AS ranks,
        count(*) AS n,
        avg(later::INT) AS later,
        sum(behind_ns)::DOUBLE * any_value(blocks) AS cost,
        median(behind_ns) AS usual
    FROM o, every
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
