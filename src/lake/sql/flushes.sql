-- kymo.flushes, a row for each stream: emitted = in_lake + lost + waiting + dropped.
SELECT
    table_name,
    stream,
    emitted::BIGINT AS emitted,
    in_lake::BIGINT AS in_lake,
    lost::BIGINT AS lost,
    waiting::BIGINT AS waiting,
    dropped::BIGINT AS dropped,
    next_row::BIGINT AS next_row,
    pid::INTEGER AS pid,
    rank::INTEGER AS rank,
    host,
    writer,
    flushed_unix_ns::BIGINT AS flushed_unix_ns
FROM (
    VALUES {rows}
) t(
    table_name, stream, emitted, in_lake, lost, waiting, dropped, next_row, pid, rank, host,
    writer, flushed_unix_ns
)
