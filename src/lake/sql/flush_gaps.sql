-- kymo.flush_gaps: times in which a lake could not be written.
SELECT
    from_unix_ns::BIGINT AS from_unix_ns,
    to_unix_ns::BIGINT AS to_unix_ns,
    attempts::BIGINT AS attempts,
    reason,
    host,
    writer
FROM (
    VALUES {rows}
) t(from_unix_ns, to_unix_ns, attempts, reason, host, writer)
