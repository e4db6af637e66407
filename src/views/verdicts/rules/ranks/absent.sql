-- threshold: 0.001
-- weight: 1.0
-- needs: dist.collectives
-- sentence: Rank {name} is absent: the other ranks wait for it in {which} for {won}.
-- evidence: {count} rank{s} arrived at this collective, and none has left it
-- advice: kymo backtrace --why shows what every rank does; look at the output of that rank
-- tab: timeline
-- query: FROM dist.ranks
--
-- A collective that has not ended, and whose group has ranks that have arrived neither at it nor at
-- a later one. A rank that still runs is absent after two seconds: before, it may be only late. So
-- is one of another host, unless its data is older than the wait: it may have arrived since. The
-- place is where the absent rank was last seen. Only the last attempt of a restarted job counts.
-- Processes whose ranks are not known are not judged. Ranks wait until the last of them has ended.
WITH
calls AS NOT MATERIALIZED (
    FROM {include last_attempt}
),
o AS (
    SELECT group_name, max(seq) AS seq
    FROM calls
    WHERE end_ns IS NULL
        AND coalesce(state, '') <> 'completed'
        AND NOT p2p
        AND seq IS NOT NULL
        AND members IS NOT NULL
        AND rank IS NOT NULL
    GROUP BY group_name
),
here AS (
    SELECT
        o.group_name,
        o.seq,
        any_value(c.op) AS op,
        any_value(c.members) AS members,
        count(DISTINCT c.rank) AS present,
        min(c.arrival_ns) AS since_ns
    FROM o
    JOIN calls c ON c.group_name = o.group_name AND c.seq = o.seq AND NOT c.p2p
    GROUP BY o.group_name, o.seq
),
expected AS (
    SELECT *, unnest(string_split(members, ','))::INTEGER AS rank
    FROM here
),
absent AS (
    SELECT e.*
    FROM expected e
    ANTI JOIN calls c
        ON c.group_name = e.group_name AND c.rank = e.rank AND c.seq >= e.seq AND NOT c.p2p
),
named AS (
    SELECT
        a.*,
        r.state,
        r.host,
        r.pid,
        r.heard_ns,
        (SELECT ns FROM {include last_moment}) - a.since_ns AS waited_ns
    FROM absent a
    LEFT JOIN {include newest_ranks} r ON r.rank = a.rank
)
SELECT
    greatest(any_value(waited_ns), 0.002 * {run_ns}),
    greatest({run_ns}, any_value(waited_ns)),
    string_agg(
        rank || coalesce(' on host ' || CASE
            WHEN (SELECT count(DISTINCT host) FROM dist.ranks) > 1 THEN host
        END, '') || ' (' || coalesce(state, 'wrote nothing') || ')',
        ', ' ORDER BY rank
    ),
    any_value(present),
    0,
    0,
    any_value(op),
    (
        SELECT arg_max(s.place, s.ts_ns)
        FROM python.samples s
        WHERE s.pid = any_value(n.pid) AND s.host IS NOT DISTINCT FROM any_value(n.host)
            AND s.tid = s.pid
    ) AS place
FROM named n
WHERE (state IS DISTINCT FROM 'running' OR waited_ns > 2000000000)
    AND NOT (state = 'unknown' AND (waited_ns < 2000000000 OR heard_ns < since_ns))
GROUP BY group_name
ORDER BY 1 DESC
LIMIT 1
