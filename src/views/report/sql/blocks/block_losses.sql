SELECT
    coalesce(sum(emitted), 0) AS emitted,
    coalesce(sum(kept), 0) AS kept,
    coalesce(sum(overwritten), 0) AS overwritten,
    coalesce(sum(dropped), 0) AS dropped,
    coalesce(sum(overwritten) FILTER (table_name = 'trace.zones'), 0) AS zones_overwritten
FROM kymo.streams
