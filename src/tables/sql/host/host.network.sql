-- Bytes received and sent by each interface, over time.
--
-- ts_ns      BIGINT   time, in ns since the recording began
-- interface  VARCHAR  network interface
-- rx_bytes   BIGINT   bytes received, since the machine started
-- tx_bytes   BIGINT   bytes sent, since the machine started
-- pid        INTEGER  a process in the network namespace of the interface
-- rank       INTEGER  rank of the process; NULL outside a distributed run
-- host       VARCHAR  host name
SELECT
    ts_ns,
    interface,
    TRY_CAST(rx_bytes AS BIGINT) AS rx_bytes,
    TRY_CAST(tx_bytes AS BIGINT) AS tx_bytes,
    target_pid AS pid,
    target_rank AS rank,
    host
FROM kymo_scan('host.network')
