-- threshold: 0.08
-- weight: 0.8
-- least_s: 0.5
-- sentence: Garbage collection takes {share} of the run ({won}).
-- evidence: {count} collection{s}, the longest {a}
-- advice: call gc.freeze() after start-up, raise gc.set_threshold(), create fewer objects in the
--     loop
-- zones_if: has_gc
-- tab: timeline
-- query: SELECT name, count, total_ns, max_ns FROM trace.regions WHERE name LIKE 'gc %'
--
-- Collections that the interpreter starts ("gc (generation 2)") and regions that are named after a
-- garbage collection or that end in gc_collect.
-- The place is the function in which they happen: it makes the objects.
-- Several processes may collect for longer than the run lasted: that is all of the run.
-- A program with steps is judged by its steps: its imports make many objects once.
WITH b AS (
    SELECT host, pid, min(start_ns) AS since, max(start_ns + duration_ns) AS until
    FROM {include steps}
    GROUP BY host, pid
    HAVING count(*) >= 5
), z AS (
    SELECT host, pid, tid, name, start_ns, duration_ns
    FROM {zones} AS all_zones
    WHERE starts_with(name, '{FACTS_GC}')
), k AS (
    SELECT
        sum(duration_ns)::DOUBLE AS ns,
        any_value(until - since) AS whole,
        count(*) AS n,
        max(duration_ns) AS longest
    FROM z
    JOIN b USING (host, pid)
    WHERE start_ns BETWEEN since AND until
), r AS (
    SELECT
        sum(self_ns) AS ns,
        {run_ns} AS whole,
        arg_max(name, self_ns) AS name,
        sum(count) AS n,
        max(max_ns) AS longest
    FROM trace.regions
    WHERE regexp_matches(name, '^(gc|garbage collection)($|[^a-z])|[.:]gc_?collect$', 'i')
), i AS (
    SELECT a.place, a.weight
    FROM (
        SELECT host, pid, tid, ts_ns, place, weight
        FROM {include weighted_samples}
        WHERE place IS NOT NULL AND NOT {include in_import}
    ) AS a
    ASOF JOIN z ON a.host = z.host AND a.pid = z.pid AND a.tid = z.tid AND a.ts_ns >= z.start_ns
    WHERE a.ts_ns < z.start_ns + z.duration_ns
), p AS (
    FROM {include top_place from=i}
)
SELECT
    CASE WHEN b.pid IS NULL THEN r.ns ELSE coalesce(k.ns, 0) END,
    CASE
        WHEN b.pid IS NULL THEN greatest(r.whole, r.ns)
        ELSE greatest(b.until - b.since, k.ns)
    END,
    r.name,
    CASE WHEN b.pid IS NULL THEN r.n ELSE k.n END,
    CASE WHEN b.pid IS NULL THEN r.longest ELSE k.longest END,
    0,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM r
LEFT JOIN b ON true
LEFT JOIN k ON true
