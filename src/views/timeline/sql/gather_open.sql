-- Open zones, until the end of the recording, in the columns of gather_zones.
SELECT
    pid,
    tid,
    depth,
    start_ns,
    greatest(coalesce(age_ns, (SELECT max(duration_ns) FROM kymo.runs) - start_ns), 1000),
    source,
    name,
    file,
    line,
    thread,
    rank,
    host
FROM trace.open_zones
