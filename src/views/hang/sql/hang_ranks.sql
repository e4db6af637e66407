-- One row for each rank of the last attempt: whether it waits in a collective, is missing in one,
-- or called another one, and what it was last seen doing. Ranks that others wait for come first.
--
-- The call that counts is the first of the rank that has not ended. A rank is missing in a
-- collective if it has arrived neither at it nor at a later one of the group; in a send or a
-- receive if it is the other side and has not called its part. A rank of another host whose data
-- ends before the others arrived is unseen: it may be there by now.
WITH
now AS (
    FROM {include last_moment}
),
ranks AS (
    FROM {include newest_ranks}
),
calls AS MATERIALIZED (
    SELECT
        c.rank,
        c.group_name,
        c.seq,
        c.op,
        c.bytes,
        c.members,
        c.peer,
        c.p2p,
        c.step,
        c.arrival_ns,
        c.end_ns,
        c.end_ns IS NULL AND c.state IN ('scheduled', 'started') AS open
    FROM {include last_attempt} c
    WHERE c.arrival_ns IS NOT NULL AND c.rank IS NOT NULL
),
-- Sends and receives that no call waited for have no end: a later one with the same rank has.
p2p_left AS (
    SELECT rank, group_name, op, peer, max(arrival_ns) AS ns
    FROM calls
    WHERE p2p AND end_ns IS NOT NULL
    GROUP BY ALL
),
here AS (
    SELECT c.*
    FROM calls c
    LEFT JOIN p2p_left p
        ON p.rank = c.rank AND p.op = c.op AND p.peer IS NOT DISTINCT FROM c.peer
        AND p.group_name IS NOT DISTINCT FROM c.group_name
    WHERE c.open AND NOT (c.p2p AND c.arrival_ns < coalesce(p.ns, c.arrival_ns))
    QUALIFY row_number() OVER (PARTITION BY c.rank ORDER BY c.arrival_ns, c.seq) = 1
),
fronts AS (
    SELECT
        group_name,
        seq,
        mode(op) AS op,
        any_value(members) AS members,
        count(*) AS waiting,
        min(arrival_ns) AS since_ns
    FROM here
    WHERE NOT p2p AND seq IS NOT NULL AND members IS NOT NULL
    GROUP BY group_name, seq
),
wanted AS (
    SELECT *, unnest(string_split(members, ','))::INTEGER AS rank FROM fronts
),
missing AS (
    SELECT w.rank, w.group_name, w.seq, w.op, w.waiting, w.since_ns
    FROM wanted w
    ANTI JOIN calls c
        ON c.rank = w.rank AND c.group_name = w.group_name AND c.seq >= w.seq AND NOT c.p2p
    UNION ALL
    SELECT h.peer, h.group_name, NULL, h.op, 1, h.arrival_ns
    FROM here h
    ANTI JOIN here o ON o.rank = h.peer AND o.p2p AND o.peer = h.rank
    WHERE h.p2p AND h.peer IS NOT NULL
),
-- Of several collectives that wait for a rank, the one with most ranks.
charged AS (
    SELECT *
    FROM missing
    QUALIFY row_number() OVER (PARTITION BY rank ORDER BY waiting DESC, since_ns) = 1
),
odd AS (
    SELECT d.rank, d.group_name, d.seq, any_value(d.expected_op) AS expected_op,
        any_value(d.expected_bytes) AS expected_bytes
    FROM dist.desync d
    JOIN here h ON h.rank = d.rank AND h.group_name = d.group_name AND h.seq = d.seq
    GROUP BY ALL
),
last AS (
    SELECT rank, arg_max(op, end_ns) AS op, arg_max(seq, end_ns) AS seq, max(end_ns) AS end_ns,
        max(step) AS step
    FROM calls
    WHERE end_ns IS NOT NULL
    GROUP BY rank
),
samples AS MATERIALIZED (
    SELECT s.host, s.pid, s.ts_ns, coalesce(s.place, s.stack[1], '') AS place, s.activity,
        s.waits_for
    FROM python.samples s
    WHERE s.tid = s.pid
),
seen AS (
    SELECT
        host,
        pid,
        max(ts_ns) AS ts_ns,
        arg_max(coalesce(place, ''), ts_ns) AS place,
        arg_max(coalesce(activity, ''), ts_ns) AS activity,
        arg_max(coalesce(waits_for, ''), ts_ns) AS waits_for
    FROM samples
    GROUP BY host, pid
),
-- How long it has been in that function; its line may change.
stays AS (
    SELECT n.host, n.pid, max(s.ts_ns) AS other_ns
    FROM seen n
    JOIN samples s ON s.host IS NOT DISTINCT FROM n.host AND s.pid = n.pid
    WHERE split_part(s.place, ' (', 1) IS DISTINCT FROM split_part(n.place, ' (', 1)
    GROUP BY n.host, n.pid
),
since AS (
    SELECT s.host, s.pid, min(s.ts_ns) AS ns
    FROM samples s
    LEFT JOIN stays t ON t.host IS NOT DISTINCT FROM s.host AND t.pid = s.pid
    WHERE s.ts_ns > coalesce(t.other_ns, -1)
    GROUP BY s.host, s.pid
),
-- What the collector of a rank has kept where nothing moved.
kept AS (
    SELECT
        host,
        rank,
        arg_max(text, ts_ns) FILTER (name = 'no progress') AS reason,
        arg_max(text, ts_ns) FILTER (name = 'no progress: place') AS place
    FROM trace.marks
    WHERE name IN ('no progress', 'no progress: place') AND rank IS NOT NULL
    GROUP BY host, rank
),
zones AS (
    SELECT host, pid, arg_max(name, depth) AS name
    FROM trace.open_zones
    GROUP BY host, pid
)
SELECT
    r.rank,
    coalesce(r.host, '') AS host,
    r.pid,
    r.state,
    CASE
        WHEN m.rank IS NOT NULL AND h.rank IS NULL AND r.state = 'unknown'
            AND r.heard_ns < m.since_ns THEN 'unseen'
        WHEN m.rank IS NOT NULL AND h.rank IS NULL THEN 'absent'
        WHEN m.rank IS NOT NULL THEN 'elsewhere'
        WHEN o.rank IS NOT NULL THEN 'differs'
        WHEN h.rank IS NOT NULL THEN 'waits'
        ELSE 'apart'
    END AS role,
    -- the call in which it waits, or the one in which it is missing
    coalesce(h.op, m.op) AS op,
    coalesce(h.seq, m.seq) AS seq,
    coalesce(h.group_name, m.group_name) AS group_name,
    h.bytes,
    now.ns - coalesce(h.arrival_ns, m.since_ns) AS waited_ns,
    -- the call that waits for it
    m.op AS wanted_op,
    m.seq AS wanted_seq,
    m.group_name AS wanted_group,
    m.waiting,
    now.ns - m.since_ns AS wanted_ns,
    o.expected_op,
    o.expected_bytes,
    coalesce(nullif(s.place, ''), nullif(k.place, ''), z.name) AS place,
    s.activity,
    s.waits_for,
    -- code at the top of a file is one function: it began not before the last call ended
    now.ns - greatest(since.ns, l.end_ns) AS place_ns,
    k.reason,
    l.op AS last_op,
    l.seq AS last_seq,
    now.ns - l.end_ns AS last_ns,
    l.step,
    now.ns - r.heard_ns AS age_ns,
    h.peer,
    r.attempt,
    r.ranks
FROM ranks r
CROSS JOIN now
LEFT JOIN here h ON h.rank = r.rank
LEFT JOIN charged m ON m.rank = r.rank
LEFT JOIN odd o ON o.rank = r.rank
LEFT JOIN last l ON l.rank = r.rank
LEFT JOIN seen s ON s.host IS NOT DISTINCT FROM r.host AND s.pid = r.pid
LEFT JOIN since ON since.host IS NOT DISTINCT FROM r.host AND since.pid = r.pid
LEFT JOIN kept k ON k.rank = r.rank AND k.host IS NOT DISTINCT FROM r.host
LEFT JOIN zones z ON z.host IS NOT DISTINCT FROM r.host AND z.pid = r.pid
ORDER BY
    CASE role
        WHEN 'absent' THEN 0
        WHEN 'differs' THEN 1
        WHEN 'elsewhere' THEN 2
        WHEN 'unseen' THEN 3
        WHEN 'waits' THEN 4
        ELSE 5
    END,
    r.rank
