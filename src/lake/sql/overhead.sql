-- kymo.overhead with the cost of writing into the lake, as a share of one core.
SELECT source, events, cost_ns_per_event, total_ns, pct
FROM kymo.overhead
UNION ALL
SELECT
    'lake',
    {flushes}::BIGINT,
    {cpu_ns} / greatest({flushes}, 1)::DOUBLE,
    {cpu_ns}::BIGINT,
    100.0 * {cpu_ns} / greatest((SELECT max(duration_ns) FROM kymo.runs), 1)
WHERE {flushes} > 0
