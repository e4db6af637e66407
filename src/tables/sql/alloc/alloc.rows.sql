-- Allocations and frees in their packed form.
--
-- ts_ns  BIGINT   time, in ns since the recording began
-- place  UBIGINT  address, with the kind in its lowest 3 bits and the thread above bit 48
-- what   UBIGINT  size in the lowest 40 bits, with the frame number above
-- pid    INTEGER  process ID
-- rank   INTEGER  rank of the process; NULL outside a distributed run
-- host   VARCHAR  host name
SELECT
    ts_ns,
    place,
    what,
    pid,
    rank,
    host
FROM kymo_scan('alloc.rows')
