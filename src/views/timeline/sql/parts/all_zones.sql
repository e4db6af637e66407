-- Ended and open zones: a table to select from. An open zone without an age (the end of the program
-- was not observed) lasts until the end of the recording. Where {samples} is true, sampled stacks
-- are zones too, in threads of their own: recorded times and times of samples do not nest. Zones of
-- an imported thread that overlap are on lanes: threads with the same tid, named "NAME (lane 2)".
-- Ranges of a thread overlap in any way: each depth is a lane.
(
    SELECT
        *,
        CASE
            WHEN thread LIKE '%(lane %)' THEN
                coalesce(TRY_CAST(regexp_extract(thread, '\(lane (\d+)\)$', 1) AS INTEGER), 1)
            WHEN ends_with(thread, '{KYMO_RANGES_SUFFIX}') THEN 2 + depth
            ELSE 1
        END AS lane
    FROM (
        SELECT
            source,
            name,
            file,
            line,
            start_ns,
            duration_ns,
            depth,
            coalesce(pid, 0) AS pid,
            coalesce(tid, 0) AS tid,
            thread,
            rank,
            step,
            false AS open
        FROM trace.zones
        UNION ALL
        SELECT
            source,
            name,
            file,
            line,
            start_ns,
            coalesce(
                age_ns,
                greatest((SELECT max(duration_ns) FROM kymo.runs) - start_ns, 0)
            ),
            depth,
            coalesce(pid, 0),
            coalesce(tid, 0),
            thread,
            rank,
            step,
            true
        FROM trace.open_zones
        UNION ALL
        SELECT
            source,
            name,
            file,
            line,
            start_ns,
            duration_ns,
            depth,
            coalesce(pid, 0),
            coalesce(tid, 0) + {SAMPLED_ZONES_TID},
            coalesce(thread, 'tid ' || tid) || ' (stack samples)',
            rank,
            step,
            open
        FROM {include sampled_zones}
        WHERE {samples}
    )
)
