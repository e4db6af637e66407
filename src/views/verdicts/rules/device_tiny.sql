-- threshold: 0.10
-- weight: 0.7
-- sentence: Device operations are tiny: the gaps between those of {name} add up to {share} of the
--     run ({won}).
-- evidence: {count} operations of {a} at the median, {b} between two of them
-- advice: fuse kernels, batch more into one, or record the sequence once and launch it as a whole
-- tab: devices
-- query: SELECT name, count(*), median(end_ns - start_ns) FROM device.ops GROUP BY 1
--
-- At least 1,000 operations with a median below 20 µs. If the mean gap exceeds 1 ms, launching the
-- operations is not the cause.
SELECT
    launch_ns + sync_ns + host_late_ns AS apart_ns,
    {run_ns},
    queue,
    ops,
    p50_ns,
    apart_ns / greatest(gaps, 1)
FROM device.queues
WHERE ops >= 1000 AND p50_ns < 20000 AND apart_ns < 1e6 * gaps
ORDER BY ops DESC
LIMIT 1
