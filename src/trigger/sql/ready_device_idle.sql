-- The row has the end of the last operation: an idle time fires once.
SELECT device, max(end_ns) AS idle_since_ns, count(*) AS operations
FROM device.ops
GROUP BY device
HAVING (SELECT max(duration_ns) FROM kymo.runs) - max(end_ns) > 10e9 AND count(*) >= 100
