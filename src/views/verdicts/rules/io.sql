-- threshold: 0.15
-- weight: 0.7
-- least_s: 1
-- sentence: The program waits for storage: a thread was blocked in I/O for {share} of the run
--     ({won}).
-- evidence: {a_bytes} read from storage, {b_bytes} written
-- advice: read ahead in another thread, keep data in memory or on faster storage, write less often
-- tab: metrics
-- query: SELECT tid, state, count(*) FROM host.threads GROUP BY ALL
--
-- The thread that was blocked (state D) in the largest share of its samples, either of the host's
-- thread list or of the stack sampler, whichever is larger.
SELECT
    {run_ns} * greatest(
        coalesce(
            (
                SELECT max(a)
                FROM (
                    SELECT avg((state = 'blocked')::INT) AS a
                    FROM host.threads
                    GROUP BY pid, tid
                    HAVING count(*) >= 3
                )
            ),
            0
        ),
        coalesce(
            (
                SELECT max(a)
                FROM (
                    SELECT sum(weight * (state = 'D')::INT) / sum(weight) AS a
                    FROM {include weighted_samples}
                    GROUP BY pid, tid
                    HAVING count(*) >= 20 AND sum(weight) > 0
                )
            ),
            0
        )
    ),
    {run_ns},
    '',
    0,
    (
        SELECT sum(b)
        FROM (SELECT max(read_bytes) - min(read_bytes) AS b FROM host.io GROUP BY pid)
    ),
    (
        SELECT sum(b)
        FROM (SELECT max(write_bytes) - min(write_bytes) AS b FROM host.io GROUP BY pid)
    )
