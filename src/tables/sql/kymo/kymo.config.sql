-- Changes of the configuration.
--
-- ts_ns  BIGINT   time, in ns since the recording began
-- key    VARCHAR  setting
-- old    VARCHAR  value before the change
-- new    VARCHAR  value after the change
-- by     VARCHAR  author of the change
SELECT
    ts_ns,
    key,
    old,
    new,
    "by"
FROM kymo_scan('kymo.config')
