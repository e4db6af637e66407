SELECT pid, tid, max(rank), count(*), max(thread), lane
FROM {include all_zones}
GROUP BY pid, tid, lane
ORDER BY pid, tid, lane
