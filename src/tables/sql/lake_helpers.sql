-- What views of a job of a lake read: the pieces of aligned clocks, the first of which counts for
-- all earlier times, and samples as dist.late reads them from a recording.
; CREATE VIEW memory.main.lake_clock_pieces AS
SELECT
    *,
    CASE WHEN row_number() OVER (PARTITION BY rank, host ORDER BY t0_ns) = 1
        THEN -9223372036854775808
        ELSE t0_ns
    END AS from_ns
FROM memory.main.lake_clocks
WHERE applied;
CREATE MACRO rec.main.kymo_samples() AS TABLE
SELECT ts_ns, host, pid, tid, place, weight_ns, cause
FROM rec.python.samples
