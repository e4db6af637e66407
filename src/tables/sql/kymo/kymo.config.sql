-- Changes of the configuration.
--
-- ts_ns  BIGINT   time, in ns since the recording began
-- key    VARCHAR  setting
-- old    VARCHAR  value before the change
-- new    VARCHAR  value after the change
-- by     VARCHAR  author of the change
-- host   VARCHAR  host name
SELECT
    ts_ns,
    key,
    old,
    new,
    "by",
    host
FROM kymo_scan('kymo.config')
