-- Stack samples of all threads, idle ones included, with what each did and waited for.
(
    SELECT
        ts_ns, host, pid, tid, place, state, time_ns, weight, doing, target,
        NULL::INTEGER AS holder, true AS python
    FROM {include weighted_samples}
    UNION ALL
    SELECT ts_ns, host, pid, tid, place, state, time_ns, weight, doing, target, holder, false
    FROM {include native_threads}
)
