-- Measured cost of recording, by source.
--
-- source             VARCHAR  c, python, line: zones of the program; torch, device: rows of
--                             python.torch_trace and device.ops; collector: the collector, on a
--                             core of its own; sampler, native: its parts that take Python and
--                             native stacks; others measure themselves
-- events             BIGINT   number of zones or rows recorded; rounds of a collector; samples of a
--                             sampler
-- cost_ns_per_event  DOUBLE   cost of one event, measured when its source started or over the whole
--                             run; NULL if not measured
-- total_ns           BIGINT   cost of all events
-- pct                DOUBLE   total_ns as a share of the wall time of the recording processes; for
--                             collector and sampler, of one core
SELECT
    source,
    events,
    cost_ns_per_event,
    total_ns,
    pct
FROM kymo_meta('overhead')
