-- The call site that held the most memory at the peak, if allocations were recorded.
SELECT site, at_peak_bytes
FROM alloc.sites
ORDER BY at_peak_bytes DESC
LIMIT 1
