-- Whether the recording has a critical path that is computed in a moment: packed files of older
-- versions have none, and the path of many millions of rows takes seconds.
SELECT
    EXISTS (
        SELECT 1
        FROM information_schema.tables
        WHERE table_schema = 'trace' AND table_name = 'critical_path'
    )
    AND (
        SELECT coalesce(sum(kept), 0) < 3000000
        FROM kymo.streams
        WHERE table_name IN ('trace.zones', 'device.ops')
    )
    AND EXISTS (SELECT 1 FROM device.ops)
