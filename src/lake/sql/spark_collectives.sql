-- dist.collectives in Spark; see lake_collectives.sql and lake_helpers.sql.
WITH
pieces AS (
    SELECT
        rank,
        host,
        offset_ns,
        drift_ppm,
        t0_ns,
        CASE WHEN row_number() OVER (PARTITION BY rank, host ORDER BY t0_ns) > 1 THEN t0_ns
        END AS from_ns,
        lead(t0_ns) OVER (PARTITION BY rank, host ORDER BY t0_ns) AS to_ns
    FROM dist.clocks_rows
    WHERE applied
),
known AS (
    SELECT
        c.rank,
        c.group_name,
        c.seq,
        c.op,
        c.bytes,
        c.dtype,
        c.step,
        c.enqueue_ns - coalesce(p.offset_ns, 0)
            - CAST(
                round(
                    coalesce(p.drift_ppm, 0) / 1e6 * (c.enqueue_ns - coalesce(p.t0_ns, 0))
                ) AS BIGINT
            )
            AS enqueue_ns,
        c.start_ns - coalesce(p.offset_ns, 0)
            - CAST(
                round(
                    coalesce(p.drift_ppm, 0) / 1e6 * (c.start_ns - coalesce(p.t0_ns, 0))
                ) AS BIGINT
            )
            AS start_ns,
        c.end_ns - coalesce(p.offset_ns, 0)
            - CAST(
                round(
                    coalesce(p.drift_ppm, 0) / 1e6 * (c.end_ns - coalesce(p.t0_ns, 0))
                ) AS BIGINT
            )
            AS end_ns,
        c.zone,
        c.peer,
        c.p2p,
        c.async,
        c.failed,
        c.arrival_ns - coalesce(p.offset_ns, 0)
            - CAST(
                round(
                    coalesce(p.drift_ppm, 0) / 1e6 * (c.arrival_ns - coalesce(p.t0_ns, 0))
                ) AS BIGINT
            )
            AS arrival_ns,
        c.group_size,
        c.members,
        c.correlation,
        c.pid,
        c.tid,
        c.thread,
        c.host,
        c.state
    FROM dist.collectives_rows c
    LEFT JOIN pieces p
        ON p.rank = c.rank AND p.host = c.host
        AND (p.from_ns IS NULL OR c.arrival_ns >= p.from_ns)
        AND (p.to_ns IS NULL OR c.arrival_ns < p.to_ns)
        AND c.arrival_ns IS NOT NULL
)
SELECT
    k.rank,
    k.group_name,
    k.seq,
    k.op,
    k.bytes,
    k.dtype,
    k.step,
    k.enqueue_ns,
    k.start_ns,
    k.end_ns,
    l.last_ns - k.arrival_ns AS wait_ns,
    k.zone,
    k.peer,
    k.p2p,
    k.async,
    k.failed,
    k.arrival_ns,
    k.group_size,
    k.members,
    k.correlation,
    k.pid,
    k.tid,
    k.thread,
    k.host,
    k.state
FROM known k
LEFT JOIN (
    SELECT group_name, seq, max(arrival_ns) AS last_ns
    FROM known
    WHERE seq IS NOT NULL AND NOT p2p
    GROUP BY group_name, seq
) l
    ON l.group_name <=> k.group_name
    AND l.seq = CASE WHEN NOT k.p2p THEN k.seq END
