-- threshold: 0.15
-- weight: 0.7
-- least_s: 1
-- sentence: The program waits for storage: a thread was blocked in I/O for {share} of the run
--     ({won}).
-- evidence: {a_bytes} read from storage, {b_bytes} written[; mostly {name}]
-- advice: flush less often (fsync, one transaction for many writes), read ahead in another thread,
--     keep data in memory or on faster storage
-- tab: metrics
-- query: SELECT tid, state, count(*) FROM host.threads GROUP BY ALL
--
-- The thread that was blocked (state D, or in a system call on a file) in the largest share of its
-- samples, either of the stack sampler or of the host's thread list, whichever is larger; the list
-- counts for processes without Python. A thread that starts a child is in state D, too, until the
-- child calls exec (vfork). The name is the file. The place of a native program is the function
-- that calls read, write, fsync and so on in samples of CPU time, which a blocking call has a
-- little of.
WITH a AS (
    SELECT
        host,
        pid,
        tid,
        place,
        weight,
        target,
        doing = 'disk' OR (state = 'D' AND doing <> 'child') AS blocked
    FROM {include waiting_threads}
), t AS (
    SELECT host, pid, tid, sum(weight * blocked::INT) / sum(weight) AS part
    FROM a
    GROUP BY host, pid, tid
    HAVING count(*) >= 20 AND sum(weight) > 0
    ORDER BY part DESC
    LIMIT 1
), i AS (
    SELECT place, weight, target
    FROM a
    SEMI JOIN t USING (host, pid, tid)
    WHERE blocked
), n AS (
    SELECT place, weight_ns AS weight
    FROM native.samples
    WHERE NOT EXISTS (FROM python.samples)
        AND regexp_matches(stack[1], '(read|write|sync|open|close|stat|rename|unlink)[0-9a-z]* \(')
), p AS (
    FROM {include top_place from=i}
    UNION ALL
    FROM {include top_place from=n}
    LIMIT 1
)
SELECT
    {run_ns} * greatest(
        coalesce(
            (
                SELECT max(a)
                FROM (
                    SELECT avg((state = 'blocked')::INT) AS a
                    FROM host.threads
                    ANTI JOIN (SELECT DISTINCT host, pid FROM python.samples) USING (host, pid)
                    GROUP BY host, pid, tid
                    HAVING count(*) >= 3
                )
            ),
            0
        ),
        coalesce((SELECT part FROM t), 0)
    ),
    {run_ns},
    (SELECT mode(target) FROM i WHERE starts_with(target, '/')),
    0,
    (
        SELECT sum(b)
        FROM (SELECT max(read_bytes) - min(read_bytes) AS b FROM host.io GROUP BY host, pid)
    ),
    (
        SELECT sum(b)
        FROM (SELECT max(write_bytes) - min(write_bytes) AS b FROM host.io GROUP BY host, pid)
    ),
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
