-- How many samples are left out of sampled_zones: a thread with more than {SAMPLED_ZONES_SAMPLES}
-- keeps every second, third … one of them.
SELECT coalesce(sum(n - ceil(n / ceil(n / {SAMPLED_ZONES_SAMPLES}))), 0)
FROM (SELECT count(*) AS n FROM {include timeline_samples} GROUP BY host, pid, tid)
