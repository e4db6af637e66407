-- Collectives as zones, one track for each rank, in the columns of device_lanes: from the arrival
-- of the rank to the end of the call, and below it the time that it waited for the last rank.
WITH calls AS MATERIALIZED (
    SELECT
        *,
        arg_max(rank, arrival_ns) OVER (PARTITION BY group_name, seq, p2p) AS last_rank
    FROM dist.collectives
    WHERE arrival_ns IS NOT NULL AND end_ns >= arrival_ns
)
SELECT
    pid,
    -2,
    depth,
    arrival_ns,
    duration_ns,
    source,
    name,
    group_name,
    0,
    'collectives',
    rank,
    host
FROM (
    SELECT pid, 0 AS depth, arrival_ns, end_ns - arrival_ns AS duration_ns, op AS name,
        'collective' AS source, group_name, rank, host
    FROM calls
    UNION ALL
    SELECT pid, 1, arrival_ns, least(wait_ns, end_ns - arrival_ns), 'wait for rank ' || last_rank,
        'wait', group_name, rank, host
    FROM calls
    WHERE wait_ns > 0
)
ORDER BY arrival_ns, depth
