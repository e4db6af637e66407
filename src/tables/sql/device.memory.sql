-- Memory of devices over time.
--
-- ts_ns       BIGINT   when, in ns since the recording began
-- device      VARCHAR  the device
-- kind        VARCHAR  allocation or free
-- bytes       BIGINT   its size
-- live_bytes  BIGINT   allocated after it
-- pool        VARCHAR  buffer, image, svm, …
-- pid         INTEGER  the process
SELECT
    ts_ns,
    device,
    CASE WHEN bytes >= 0 THEN 'allocation' ELSE 'free' END AS kind,
    abs(bytes) AS bytes,
    live_bytes,
    kind AS pool,
    pid
FROM kymo_scan('device.memory')
