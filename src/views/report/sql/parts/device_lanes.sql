-- Device operations as zones, one track for each queue: pid, tid, depth, start_ns, duration_ns,
-- source, name, file, line, thread, rank, host. Zones of one depth must not overlap: a part of an
-- execution is one level below it, and so is an operation that overlaps another one of its queue.
-- Modules have a depth of their own.
SELECT
    pid,
    -1,
    coalesce(
        depth,
        (execution IS NOT NULL AND kind <> 'execution')::INT
        + (
            start_ns < coalesce(
                max(end_ns) OVER (
                    PARTITION BY host, pid, device, queue, kind = 'execution'
                    ORDER BY start_ns, end_ns
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ),
                start_ns
            )
        )::INT
    ),
    start_ns,
    end_ns - start_ns,
    'device',
    name,
    model,
    0,
    concat_ws(', ', queue, device),
    rank,
    host
FROM device.ops
WHERE start_ns IS NOT NULL AND end_ns >= start_ns
