-- Samples of the main thread within steps of the table {steps}, with its columns: a sample belongs
-- to the last step that began before it, if that has not ended.
(
    SELECT p.place, p.stack, p.weight, p.ts_ns, p.tid, p.doing, s.*
    FROM (
        SELECT place, stack, weight, ts_ns, host, pid, tid, doing
        FROM {include weighted_samples}
        WHERE tid = pid AND cause = 'period'
    ) AS p
    ASOF JOIN (SELECT * FROM {steps}) AS s
        ON p.host = s.host AND p.pid = s.pid AND p.ts_ns >= s.start_ns
    WHERE p.ts_ns < s.start_ns + s.duration_ns
)
