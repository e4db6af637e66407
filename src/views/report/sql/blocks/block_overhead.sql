SELECT source, events, cost_ns_per_event, total_ns, pct
FROM kymo.overhead
