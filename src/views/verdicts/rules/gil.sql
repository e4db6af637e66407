-- threshold: 0.20
-- weight: 0.6
-- least_s: 1
-- sentence: Python threads wait for each other: {name} waits for the GIL for {share} of the run.
-- evidence: {count} threads compete for the GIL; it is held for {a} of {whole}
-- advice: use processes instead of threads, or code that releases the GIL (NumPy, torch, I/O)
-- tab: flame?of=samples
-- query: SELECT thread, gil, state, count(*) FROM python.samples GROUP BY ALL
--
-- Threads that all compute and take turns: each waits while another holds the GIL, which is held
-- nearly all the time. Samples in the modules named below are left out: a thread that joins, or
-- reads a queue or a socket, waits for something else. Each process has a GIL of its own: the
-- process whose threads wait longest is judged.
WITH t AS (
    SELECT
        pid,
        any_value(thread) AS thread,
        sum(weight * gil::INT) / sum(weight) AS held,
        sum(weight * (NOT gil AND state = 'S')::INT) / sum(weight) AS waits,
        count(*) AS n
    FROM {include weighted_samples}
    WHERE NOT regexp_matches(
        stack[1],
        '(threading|queue|selectors|socket|ssl|subprocess|connection|events)\.py:'
    )
    GROUP BY pid, tid
    HAVING count(*) >= 20 AND sum(weight) > 0
)
SELECT
    {run_ns} * max(waits),
    {run_ns},
    arg_max(thread, waits),
    count(*),
    {run_ns} * sum(held),
    0
FROM t
WHERE held BETWEEN 0.05 AND 0.9
GROUP BY pid
HAVING count(*) >= 2 AND sum(held) >= 0.8
ORDER BY max(waits) DESC
LIMIT 1
