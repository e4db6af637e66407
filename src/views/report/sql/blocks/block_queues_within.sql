-- device.queues of the time range [{from}, {to}): operations and gaps that cross its ends are cut
-- there. A piece is the time that an operation adds to the busy time of its queue. The view is not
-- reused: it sums over the whole run, and in a packed file it is a table.
WITH work AS (
    SELECT
        host,
        pid,
        device,
        queue,
        greatest(start_ns, {from}) AS a,
        least(end_ns, {to}) AS b
    FROM device.ops
    WHERE kind NOT IN ('marker', 'barrier', 'execution', 'module')
        AND end_ns > {from}
        AND start_ns < {to}
), pieces AS (
    SELECT
        host,
        pid,
        device,
        queue,
        greatest(
            a,
            coalesce(
                max(b) OVER (
                    PARTITION BY host, pid, device, queue
                    ORDER BY a, b
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ),
                a
            )
        ) AS a,
        b
    FROM work
), points AS (
    SELECT device, t, sum(d) AS d
    FROM (
        SELECT device, a AS t, 1 AS d
        FROM pieces
        WHERE b > a
        UNION ALL
        SELECT device, b, -1
        FROM pieces
        WHERE b > a
    )
    GROUP BY ALL
), spans AS (
    SELECT
        device,
        t,
        CASE WHEN sum(d) OVER w > 1 THEN lead(t) OVER w - t ELSE 0 END AS ns
    FROM points
    WINDOW w AS (PARTITION BY device ORDER BY t)
), together AS (
    SELECT
        device,
        t,
        coalesce(
            sum(ns) OVER (
                PARTITION BY device
                ORDER BY t
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            0
        ) AS ns
    FROM spans
), busy AS (
    SELECT
        p.host,
        p.pid,
        p.device,
        p.queue,
        sum(p.b - p.a) AS ns,
        sum(y.ns - x.ns) AS both_ns
    FROM pieces p
    JOIN together x ON x.device = p.device AND x.t = p.a
    JOIN together y ON y.device = p.device AND y.t = p.b
    WHERE p.b > p.a
    GROUP BY ALL
), counted AS (
    SELECT host, pid, device, queue, count(*) AS ops
    FROM work
    GROUP BY ALL
), gaps AS (
    SELECT
        host,
        pid,
        device,
        queue,
        cause,
        least(start_ns + duration_ns, {to}) - greatest(start_ns, {from}) AS ns
    FROM device.gaps
    WHERE start_ns + duration_ns > {from} AND start_ns < {to}
), held AS (
    SELECT
        host,
        pid,
        device,
        queue,
        count(*) AS gaps,
        max(ns) AS longest_gap_ns,
        sum(ns) FILTER (cause = 'host late') AS host_late_ns,
        sum(ns) FILTER (cause = 'synchronisation') AS sync_ns,
        sum(ns) FILTER (cause = 'dependency') AS dependency_ns,
        sum(ns) FILTER (cause = 'launch') AS launch_ns
    FROM gaps
    GROUP BY ALL
), lives AS (
    SELECT
        device,
        greatest(least(max(last_ns), {to}) - greatest(min(first_ns), {from}), 0) AS ns
    FROM device.queues
    GROUP BY 1
)
SELECT
    q.device,
    q.queue,
    coalesce(b.ns, 0)::BIGINT AS busy_ns,
    (l.ns - coalesce(b.ns, 0))::BIGINT AS idle_ns,
    coalesce(b.ns, 0) / nullif(l.ns, 0) AS utilisation,
    b.both_ns / b.ns AS overlap,
    coalesce(c.ops, 0) AS ops,
    coalesce(h.gaps, 0) AS gaps,
    coalesce(h.longest_gap_ns, 0) AS longest_gap_ns,
    coalesce(h.host_late_ns, 0)::BIGINT AS host_late_ns,
    coalesce(h.sync_ns, 0)::BIGINT AS sync_ns,
    coalesce(h.dependency_ns, 0)::BIGINT AS dependency_ns,
    coalesce(h.launch_ns, 0)::BIGINT AS launch_ns
FROM device.queues q
JOIN lives l USING (device)
LEFT JOIN busy b USING (host, pid, device, queue)
LEFT JOIN counted c USING (host, pid, device, queue)
LEFT JOIN held h USING (host, pid, device, queue)
ORDER BY q.device, q.core
LIMIT 500
