-- Call sites that allocated, by what they held at the peak.
SELECT
    coalesce(site, array_to_string(stack[1:3], ' < ')) AS site,
    sum(at_peak_bytes) AS at_peak_bytes,
    sum(live_bytes) AS live_bytes,
    sum(allocated_bytes) AS allocated_bytes,
    sum(count) AS count
FROM alloc.sites
GROUP BY 1
ORDER BY 2 DESC
LIMIT 200
