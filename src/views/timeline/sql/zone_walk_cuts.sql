-- Times that divide a thread with many zones into parts of about the same size: the quantiles
-- {shares} of the start times.
SELECT DISTINCT edge::BIGINT AS cut
FROM (
    SELECT unnest(approx_quantile(start_ns, [{shares}])) AS edge
    FROM {include all_zones}
    WHERE pid = {pid} AND tid = {tid} AND lane = {lane}
)
ORDER BY cut
