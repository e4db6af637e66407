-- Changes of the configuration.
--
-- ts_ns  BIGINT   when, in ns since the recording began
-- key    VARCHAR  the setting
-- old    VARCHAR  its value before
-- new    VARCHAR  its value after
-- by     VARCHAR  who changed it
SELECT
    ts_ns,
    key,
    old,
    new,
    "by"
FROM kymo_scan('kymo.config')
