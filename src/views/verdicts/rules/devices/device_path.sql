-- threshold: 0.25
-- weight: 0.1
-- sentence: {name} is {share} of the critical path ({won} of {whole}): the run would end {a}
--     earlier without it.
-- evidence: {count} time{s} on the path, as {which}
-- advice: make it cheaper or call it less often; what is not on the path gains nothing
-- tab: timeline
-- query: SELECT path, kind, name, sum(duration_ns), any_value(all_win_ns) FROM trace.critical_path
--     GROUP BY ALL ORDER BY 4 DESC
--
-- Imported traces: the costliest operator of the host or kernel on the critical path.
-- Communication, copies, waits, launches and data loading have verdicts of their own; time that no
-- zone covers cannot be made cheaper by its name. Without it
-- the run gains at least half of its time, or another path is nearly as long.
--
-- Ranks that no collective connects have a path each: this is about the longest one.
WITH c AS (
    {include longest_path}
), t AS (
    SELECT sum(duration_ns) AS ns
    FROM c
), n AS (
    SELECT kind, name, sum(duration_ns) AS ns, sum(count) AS n, any_value(all_win_ns) AS win
    FROM c
    WHERE kind IN ('host', 'kernel')
        AND NOT starts_with(name, 'between ')
        AND name <> 'outside of zones'
        AND NOT contains(name, 'DataLoader')
        AND (SELECT count(*) FROM kymo.imports) > 0
    GROUP BY kind, name
    HAVING win >= 0.5 * sum(duration_ns)
    ORDER BY ns DESC
    LIMIT 1
), r AS (
    SELECT p.*
    FROM c p
    SEMI JOIN n USING (kind, name)
), q AS (
    SELECT {include path_place name=if(kind='host',name,NULL)} AS place, duration_ns AS weight
    FROM r
), p AS (
    FROM {include top_place from=q}
)
SELECT
    n.ns,
    t.ns,
    {include path_name},
    n.n,
    n.win,
    0,
    CASE n.kind WHEN 'host' THEN 'work of the host' ELSE 'a kernel' END,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM n, t
