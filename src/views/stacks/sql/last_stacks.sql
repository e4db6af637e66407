SELECT pid, tid, thread, func, file, lineno, age_ns, (SELECT program FROM kymo.runs)
FROM python.backtrace
ORDER BY pid, tid, depth
