-- threshold: 0.001
-- weight: 1.0
-- needs: dist.collectives
-- sentence: Ranks disagree at collective {count}: rank {name} calls {which}.
-- evidence: {a} since the first rank arrived; the first collective at which they differ counts
-- advice: make all ranks of the group call the same collectives in the same order, with equal sizes
-- tab: timeline
-- query: SELECT rank, op, bytes, group_name, seq FROM dist.collectives ORDER BY seq DESC, rank
--
-- A desync: at the same number of a group's calls one rank calls another operation than the others,
-- or has another size where all sizes must be equal. The place is where that rank was last seen.
WITH
c AS NOT MATERIALIZED (
    SELECT group_name, seq, rank, host, pid, op, bytes, arrival_ns, end_ns
    FROM {include last_attempt}
    WHERE seq IS NOT NULL AND NOT p2p AND rank IS NOT NULL AND arrival_ns IS NOT NULL
),
d AS (
    SELECT group_name, seq, min(arrival_ns) AS since_ns, bool_or(end_ns IS NULL) AS hangs
    FROM c
    GROUP BY group_name, seq
    HAVING count(DISTINCT op) > 1
        OR (count(DISTINCT bytes) > 1 AND any_value(op) IN ('all_reduce', 'reduce', 'broadcast'))
    ORDER BY since_ns
    LIMIT 1
),
k AS (
    SELECT
        c.op,
        c.bytes,
        count(*) AS n,
        arg_min({'rank': c.rank, 'host': c.host, 'pid': c.pid}, c.rank) AS first
    FROM c
    JOIN d ON c.group_name IS NOT DISTINCT FROM d.group_name AND c.seq = d.seq
    GROUP BY ALL
),
odd AS (
    SELECT * FROM k ORDER BY n, first.rank DESC LIMIT 1
),
usual AS (
    SELECT * FROM k ORDER BY n DESC, first.rank LIMIT 1
),
t AS (
    SELECT max(started_ns + duration_ns) AS end_ns FROM kymo.runs
)
SELECT
    greatest(CASE WHEN d.hangs THEN t.end_ns - d.since_ns ELSE 0 END, 0.002 * {run_ns}),
    greatest({run_ns}, t.end_ns - d.since_ns),
    odd.first.rank
    || CASE
        WHEN (SELECT count(DISTINCT host) FROM c) > 1 THEN ' on host ' || odd.first.host
        ELSE ''
    END,
    d.seq,
    greatest(t.end_ns - d.since_ns, 0),
    0,
    odd.op
    || CASE
        WHEN odd.op = usual.op THEN ' of ' || format('{:,}', odd.bytes) || ' bytes'
        ELSE ''
    END
    || ', ' || usual.n || CASE WHEN usual.n = 1 THEN ' other ' ELSE ' others ' END
    || CASE
        WHEN odd.op = usual.op THEN 'of ' || format('{:,}', usual.bytes)
        ELSE usual.op
    END,
    (
        SELECT arg_max(s.place, s.ts_ns)
        FROM python.samples s
        WHERE s.host = odd.first.host AND s.pid = odd.first.pid AND s.tid = s.pid
    ) AS place
FROM d, odd, usual, t
WHERE (odd.op, odd.bytes) <> (usual.op, usual.bytes)
