SELECT pid, tid, max(rank), count(*), max(thread)
FROM {include all_zones}
GROUP BY pid, tid
ORDER BY pid, tid
