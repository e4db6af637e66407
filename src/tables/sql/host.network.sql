-- Bytes received and sent by each interface, over time.
--
-- ts_ns      BIGINT   when, in ns since the recording began
-- interface  VARCHAR  the interface
-- rx_bytes   BIGINT   received, since the machine began
-- tx_bytes   BIGINT   sent, since the machine began
-- pid        INTEGER  a process that is in the network namespace of the interface
SELECT
    ts_ns,
    interface,
    TRY_CAST(rx_bytes AS BIGINT) AS rx_bytes,
    TRY_CAST(tx_bytes AS BIGINT) AS tx_bytes,
    target_pid AS pid
FROM kymo_scan('host.network')
