-- dist.clocks of a job, as kymo lake align writes it. {rows}: one for each rank and piece.
SELECT
    rank::INTEGER AS rank,
    host,
    clock::INTEGER AS clock,
    t0_ns::BIGINT AS t0_ns,
    offset_ns::BIGINT AS offset_ns,
    drift_ppm::DOUBLE AS drift_ppm,
    error_ns::BIGINT AS error_ns,
    collectives::BIGINT AS collectives,
    method,
    applied::BOOLEAN AS applied,
    reason::VARCHAR AS reason
FROM (
    VALUES {rows}
) t(
    rank, host, clock, t0_ns, offset_ns, drift_ppm, error_ns, collectives, method, applied, reason
)
