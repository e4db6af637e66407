-- Device memory over time.
--
-- ts_ns       BIGINT   time, in ns since the recording began
-- device      VARCHAR  device
-- kind        VARCHAR  allocation or free
-- bytes       BIGINT   size
-- live_bytes  BIGINT   bytes allocated on the device after it
-- pool        VARCHAR  buffer, image, svm, …
-- pid         INTEGER  process ID
-- rank        INTEGER  rank of the process; NULL outside a distributed run
-- host        VARCHAR  host name
SELECT
    ts_ns,
    device,
    CASE WHEN bytes >= 0 THEN 'allocation' ELSE 'free' END AS kind,
    abs(bytes) AS bytes,
    live_bytes,
    kind AS pool,
    pid,
    rank,
    host
FROM kymo_scan('device.memory')
