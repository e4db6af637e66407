-- spans, intervals of a process's device in which the number of running operations of each class
-- does not change; needs classed. {further} is a table of further moments (host, pid, device, t) at
-- which an interval ends.
moments AS (
    SELECT
        host,
        pid,
        device,
        t,
        sum(change) FILTER (class = 'computation') AS computation,
        sum(change) FILTER (class = 'communication') AS communication,
        sum(change) FILTER (class = 'memory') AS memory
    FROM (
        SELECT host, pid, device, start_ns AS t, class, 1 AS change FROM classed
        UNION ALL
        SELECT host, pid, device, end_ns, class, -1 FROM classed
        UNION ALL
        SELECT host, pid, device, t, NULL, 0 FROM {further}
    )
    GROUP BY host, pid, device, t
),
spans AS MATERIALIZED (
    SELECT
        host,
        pid,
        device,
        t,
        lead(t) OVER w - t AS span_ns,
        coalesce(sum(computation) OVER w, 0) > 0 AS computes,
        coalesce(sum(communication) OVER w, 0) > 0 AS communicates,
        coalesce(sum(memory) OVER w, 0) > 0 AS moves
    FROM moments
    WINDOW w AS (PARTITION BY host, pid, device ORDER BY t)
)
