-- threshold: 0.15
-- weight: 0.7
-- least_s: 1
-- sentence: Sending data between processes is costly: pickling and pipes take {share} of the
--     program's CPU time ({won} of {whole}).
-- evidence: {count} samples in pickle and in pipes of multiprocessing
-- advice: send less: file names or indices instead of data, shared memory, data that workers load
--     once (initializer), larger chunks (chunksize)
-- tab: flame?of=samples
-- query: SELECT stack, sum(weight_ns) FROM python.samples GROUP BY 1 ORDER BY 2 DESC
--
-- Samples on a CPU in multiprocessing's pickler, its connections and its queues, in all processes
-- of the program. A worker that waits for a task is not on a CPU. The place is the function of the
-- program's own code that waits for the workers or sends to them; what runs in its stack is not
-- known to the threads of a pool that pickle for it.
WITH a AS (
    SELECT
        host,
        pid,
        tid,
        place,
        state,
        weight,
        array_to_string(stack, ';') AS text,
        stack[1] AS innermost
    FROM {include weighted_samples}
    WHERE len(stack) > 0 AND NOT {include in_import}
), c AS (
    SELECT
        *,
        state = 'R'
            AND regexp_matches(innermost, '/multiprocessing/(reduction|connection|queues)\.py:')
            AS sends
    FROM a
), t AS (
    SELECT
        sum(weight) FILTER (sends) AS ns,
        sum(weight) FILTER (state = 'R') AS whole,
        count(*) FILTER (sends) AS n
    FROM c
), w AS (
    SELECT place, weight
    FROM c
    WHERE place IS NOT NULL
        AND regexp_matches(text, '/(multiprocessing|concurrent/futures)/[a-z_]+\.py:')
        AND (sends OR state <> 'R')
        AND NOT contains(text, '_bootstrap (')
), p AS (
    FROM {include top_place from=w}
)
SELECT
    ns,
    whole,
    '',
    n,
    0,
    0,
    (SELECT place FROM p) AS place,
    (SELECT share FROM p) AS place_share
FROM t
WHERE n >= 20
