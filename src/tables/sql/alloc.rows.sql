-- Allocations and frees as they were written.
--
-- ts_ns  BIGINT   when, in ns since the recording began
-- place  UBIGINT  the address, with the kind in its lowest three bits; above 48 the thread
-- what   UBIGINT  the size in 40 bits, the frame's node above
-- pid    INTEGER  the process
SELECT
    ts_ns,
    place,
    what,
    pid
FROM kymo_scan('alloc.rows')
