SELECT start_ns, duration_ns, name
FROM {include steps}
ORDER BY start_ns
