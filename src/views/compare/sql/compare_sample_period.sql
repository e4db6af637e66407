-- The median time between stack samples of a process; -1 if there are too few to tell, NULL if
-- there are none.
SELECT
    CASE
        WHEN count(*) >= 10 THEN median(gap)
        WHEN count(*) > 0 THEN -1
    END
FROM (
    SELECT ts_ns - lag(ts_ns) OVER (PARTITION BY pid ORDER BY ts_ns) AS gap
    FROM (SELECT DISTINCT pid, ts_ns FROM python.samples)
)
