-- classed, the operations of devices with their class: computation, communication or memory.
-- A kernel communicates if its arguments show it (a flag of the row), else by its name.
classed AS MATERIALIZED (
    SELECT
        host,
        pid,
        rank,
        device,
        queue,
        core,
        name,
        kind,
        step,
        correlation,
        call,
        call_ns,
        start_ns,
        greatest(end_ns, start_ns) AS end_ns,
        CASE WHEN (flags & {SCHEMA_DEVICE_QUEUED}) > 0 THEN queued_ns END AS queued_ns,
        CASE
            WHEN kind BETWEEN {KYMO_DEVICE_READ} AND {KYMO_DEVICE_MIGRATE} THEN 'memory'
            WHEN (flags & {SCHEMA_DEVICE_COMM}) > 0
                OR (kind = {KYMO_DEVICE_KERNEL} AND regexp_matches(name, '^(nccl|rccl)'))
                THEN 'communication'
            ELSE 'computation'
        END AS class
    FROM kymo_scan('device.ops')
    WHERE kind < {KYMO_DEVICE_EXECUTION}
        AND kind NOT IN ({KYMO_DEVICE_MARKER}, {KYMO_DEVICE_BARRIER})
        AND (flags & {DEVICE_BOTH_ENDS}) = {DEVICE_BOTH_ENDS}
)
