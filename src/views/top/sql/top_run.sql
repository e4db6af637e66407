-- The run, and its losses and cost.
SELECT
    r.program,
    r.pid,
    r.state,
    coalesce(r.exit_code, -1),
    r.signal,
    r.duration_ns,
    (SELECT coalesce(sum(emitted), 0) FROM kymo.streams),
    (SELECT coalesce(sum(overwritten), 0) FROM kymo.streams),
    (SELECT coalesce(sum(dropped), 0) FROM kymo.streams),
    (SELECT sum(pct) FROM kymo.overhead WHERE source NOT IN ('collector', 'sampler')),
    (SELECT sum(pct) FROM kymo.overhead WHERE source IN ('collector', 'sampler'))
FROM kymo.runs r
