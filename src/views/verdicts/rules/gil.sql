-- threshold: 0.20
-- weight: 0.6
-- least_s: 1
-- sentence: Python threads wait for each other: {name} waits for the GIL for {share} of the run.
-- evidence: {count} threads compete for the GIL; it is held for {a} of {whole}[, mostly in {which}]
-- advice: use processes instead of threads, or code that releases the GIL (NumPy, torch, I/O)
-- tab: flame?of=samples
-- query: SELECT thread, gil, activity, sum(weight_ns) FROM python.samples GROUP BY ALL
--
-- Threads that all compute and take turns: each waits while another holds the GIL, which is held
-- nearly all the time. Samples in the modules named below are left out: a thread that joins, or
-- reads a queue or a socket, waits for something else. Each process has a GIL of its own: the
-- process whose threads wait longest is judged. A thread that waits for the GIL wakes every 5 ms;
-- on a busy machine it is then ready without a core, which counts up to as much as its other waits.
-- The place is the function that holds the GIL.
WITH a AS (
    SELECT
        *,
        doing = 'GIL' OR (doing = 'wait' AND NOT gil) AS waiting,
        doing = 'ready' AND NOT gil AS starved
    FROM {include weighted_samples}
    WHERE NOT regexp_matches(
        stack[1],
        '(threading|queue|selectors|socket|ssl|subprocess|connection|events)\.py:'
    )
), t AS (
    SELECT
        host,
        pid,
        tid,
        any_value(thread) AS thread,
        sum(weight * gil::INT) / sum(weight) AS held,
        sum(weight * waiting::INT) AS waited,
        (waited + least(sum(weight * starved::INT), waited)) / sum(weight) AS waits,
        sum(time_ns * gil::INT) AS held_ns,
        waits * sum(time_ns) AS waits_ns,
        bool_or(time_ns > 0) AS timed,
        count(*) AS n
    FROM a
    GROUP BY host, pid, tid
    HAVING count(*) >= 20 AND sum(weight) > 0
), g AS (
    SELECT
        host,
        pid,
        CASE WHEN bool_or(timed) THEN max(waits_ns) ELSE {run_ns} * max(waits) END AS ns,
        arg_max(thread, waits) AS thread,
        count(*) AS n,
        CASE WHEN bool_or(timed) THEN sum(held_ns) ELSE {run_ns} * sum(held) END AS held_ns
    FROM t
    WHERE held BETWEEN 0.05 AND 0.9
    GROUP BY host, pid
    HAVING count(*) >= 2 AND sum(held) >= 0.8
    ORDER BY ns DESC
    LIMIT 1
), h AS (
    SELECT place, weight
    FROM a
    SEMI JOIN g USING (host, pid)
    WHERE gil
), p AS (
    FROM {include top_place from=h}
)
SELECT
    least(ns, {run_ns}),
    {run_ns},
    thread,
    n,
    least(held_ns, {run_ns}),
    0,
    (SELECT {include place_name} FROM p),
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM g
