-- threshold: 0.05
-- weight: 0.9
-- needs: python.loop_stalls
-- sentence: The event loop is blocked: {count} stall{s} over 10 ms, {won} in all ({share} of the
--     run)[, mostly in {name}]{which}.
-- evidence: the longest takes {a}, half of them more than {b}
-- advice: run it in a thread (asyncio.to_thread, loop.run_in_executor), or use the async form of
--     the call
-- tab: flame?of=samples
-- query: SELECT function, file, line, count(*), sum(duration_ns) FROM python.loop_stalls GROUP BY
--     ALL ORDER BY 5 DESC
--
-- The loop that was blocked longest. A stall counts if another callback waited for its end, or if
-- that is not known (uvloop). The time in which the thread was ready but had no core is left out:
-- on a busy machine every callback may take longer than 10 ms. Of a stall without a sample, that is
-- the part of the thread's other stalls; the function is that of stalls with samples, if any. The
-- share is of the run without the time in which that thread had no core, too. Less than 50 ms in
-- all are no finding: in a short program that may be one stall of a busy machine.
WITH stalls AS (
    SELECT
        *,
        duration_ns - coalesce(
            starved_ns,
            duration_ns * (sum(starved_ns) OVER of_thread)
                / (sum(duration_ns) FILTER (starved_ns IS NOT NULL) OVER of_thread),
            0
        ) AS blocked_ns,
        function || coalesce(' (' || file || ':' || line || ')', '') AS place
    FROM python.loop_stalls
    WHERE coalesce(ready, 1) > 0
    WINDOW of_thread AS (PARTITION BY host, pid, tid)
    QUALIFY blocked_ns >= {SCHEMA_LOOP_STALL_NS}
), worst AS (
    SELECT host, pid, tid
    FROM stalls
    GROUP BY host, pid, tid
    ORDER BY sum(blocked_ns) DESC
    LIMIT 1
), of_worst AS (
    SELECT stalls.*
    FROM stalls
    JOIN worst USING (host, pid, tid)
), starved AS (
    SELECT coalesce(max(run_delay_ns) - min(run_delay_ns), 0) AS ns
    FROM host.threads
    SEMI JOIN worst USING (host, pid, tid)
), f AS (
    SELECT
        mode(place) AS place,
        {include place_label} AS label,
        sum(blocked_ns) AS ns,
        sum(sum(blocked_ns)) OVER () AS whole
    FROM of_worst
    WHERE place IS NOT NULL
        AND (samples > 0 OR NOT EXISTS (FROM of_worst WHERE samples > 0))
    GROUP BY {include place_function}
    ORDER BY ns DESC
    LIMIT 1
)
SELECT
    sum(blocked_ns),
    greatest({run_ns} - (SELECT ns FROM starved), sum(blocked_ns)),
    (SELECT label FROM f),
    count(*),
    max(duration_ns),
    median(duration_ns),
    CASE WHEN max(ready) > 0
        THEN '; up to ' || max(ready)
            || CASE WHEN max(ready) = 1 THEN ' task was' ELSE ' tasks were' END
            || ' ready meanwhile'
        ELSE ''
    END,
    (SELECT place FROM f) AS place,
    (SELECT ns / whole FROM f) AS place_share
FROM of_worst
HAVING sum(blocked_ns) >= 50000000
