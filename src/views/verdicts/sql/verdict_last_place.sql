-- The function of the program's own code in which the main thread was last seen.
SELECT arg_max(place, ts_ns)
FROM python.samples
WHERE place IS NOT NULL AND tid = pid
    AND (host, pid) IN (SELECT (host, pid) FROM kymo.runs)
