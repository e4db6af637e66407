-- The time between stack samples of a process: with a set rate the median. Where kymo chose the
-- rate, gaps differ between alike runs too: then it is the constant. -1 if there are too few to
-- tell, NULL if there are none.
WITH pace AS (
    SELECT bool_or(key = 'sampling') AND NOT bool_or(key = 'sample_rate') AS chosen
    FROM kymo.config
)
SELECT
    CASE
        WHEN count(*) >= 10 AND (SELECT chosen FROM pace) THEN {SCHEMA_SAMPLE_PERIOD_NS}
        WHEN count(*) >= 10 THEN median(gap)
        WHEN count(*) > 0 THEN -1
    END
FROM (
    SELECT ts_ns - lag(ts_ns) OVER (PARTITION BY host, pid ORDER BY ts_ns) AS gap
    FROM (SELECT DISTINCT host, pid, ts_ns FROM python.samples)
)
