SELECT pid, tid, thread, func, file, lineno, age_ns, (SELECT any_value(program) FROM kymo.runs)
FROM python.backtrace
ORDER BY pid, tid, depth
