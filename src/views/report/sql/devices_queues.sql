-- Queues by busy time; the device is named if there are several, by its rank if each rank has one.
SELECT
    CASE WHEN several THEN regexp_replace(queue, '^stream ', 's') ELSE queue END,
    CASE WHEN by_rank THEN 'rank ' || rank WHEN several THEN device END,
    busy_ns,
    utilisation,
    ops,
    host_late_ns,
    sync_ns,
    dependency_ns,
    launch_ns,
    count(*) OVER ()
FROM (
    SELECT
        *,
        several
        AND count(rank) OVER () = count(*) OVER ()
        AND count(DISTINCT rank) OVER () = count(DISTINCT (host, device)) OVER () AS by_rank
    FROM (
        SELECT *, count(DISTINCT device) OVER () > 1 AS several
        FROM device.queues
    )
)
ORDER BY busy_ns DESC, core
LIMIT {limit}
