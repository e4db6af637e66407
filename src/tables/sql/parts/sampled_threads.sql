-- Stack samples of all threads with the columns of weighted_samples: those of Python, and native
-- ones of threads without Python, unless these were idle.
(
    SELECT ts_ns, host, pid, tid, thread, stack, place, state, cause, weight_ns, time_ns, weight
    FROM {include weighted_samples}
    UNION ALL
    SELECT ts_ns, host, pid, tid, thread, stack, place, state, cause, weight_ns, time_ns, weight
    FROM {include native_threads}
    WHERE NOT idle
)
