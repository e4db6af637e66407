-- The call sites that held the most memory at the peak.
SELECT site, sum(at_peak_bytes)::DOUBLE AS bytes
FROM alloc.sites
WHERE at_peak_bytes > 0
GROUP BY site
ORDER BY 2 DESC
LIMIT 5
