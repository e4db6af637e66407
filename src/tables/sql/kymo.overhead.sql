-- What recording cost, as measured.
--
-- source             VARCHAR  c, python, line: zones of the program; torch, device: rows of
--         python.torch_trace and device.ops; collector: kymo, which watches on a core of its own;
--         sampler: its part that takes stacks; others by what they measure themselves
-- events             BIGINT   zones or rows that were recorded; rounds of a collector, samples of
--         a sampler
-- cost_ns_per_event  DOUBLE   what one costs, as measured when its source began, or over all; NULL
--         where it was not
-- total_ns           BIGINT   of all of them
-- pct                DOUBLE   that as a share of the wall time of the processes that recorded
--         them; of a collector or sampler, of one core
SELECT
    source,
    events,
    cost_ns_per_event,
    total_ns,
    pct
FROM kymo_meta('overhead')
