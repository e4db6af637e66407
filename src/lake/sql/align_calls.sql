-- Calls that all ranks of a group leave together, one for each host: its last arrival and its first
-- end. Sorted as clock_calls_read() sorts them. {files}: as they were recorded; one in {every}
-- sequence numbers is taken.
WITH
hosts AS (
    SELECT host, (row_number() OVER (ORDER BY host) - 1)::UINTEGER AS number
    FROM (
        SELECT DISTINCT host
        FROM memory.main.lake_ranks
        WHERE host IS NOT NULL AND rank IS NOT NULL
    )
),
attempts AS (
    SELECT host, pid, max(coalesce(attempt, 0)) AS attempt
    FROM memory.main.lake_ranks
    GROUP BY host, pid
)
SELECT
    c.seq::UBIGINT AS seq,
    (hash(coalesce(c.group_name, '')) & 4294967295)::UINTEGER AS group_id,
    (hash(coalesce(c.members, '')) & 4294967295)::UINTEGER AS members_id,
    (hash(c.op) & 4294967295)::UINTEGER AS op_id,
    coalesce(a.attempt, 0)::INTEGER AS attempt,
    h.number AS host,
    max(c.arrival_ns)::BIGINT AS arrival_ns,
    min(c.end_ns)::BIGINT AS end_ns
FROM {files} c
JOIN hosts h ON h.host = c.host
LEFT JOIN attempts a ON a.host = c.host AND a.pid = c.pid
WHERE c.seq >= 0
    AND c.seq % {every} = 0
    AND NOT c.p2p
    AND NOT c.failed
    AND c.end_ns >= c.arrival_ns
    AND regexp_matches(
        c.op, '^(all_reduce|all_gather|reduce_scatter|all_to_all|barrier)'
    )
GROUP BY 1, 2, 3, 4, 5, 6
ORDER BY 1, 2, 3, 5, 4, 6
