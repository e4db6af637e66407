-- Sampled stacks of an unmarked program as zones of the source 'sample': a table to select from.
-- Samples of a thread that follow each other with the same callers and the same function at a depth
-- become one zone, from the first of them to the first sample without it. Lines do not count, or
-- every loop would be cut into pieces. A thread with more than {SAMPLED_ZONES_SAMPLES} samples is
-- thinned evenly. The last sample of a thread lasts as long as most of them, within the run.
(
    WITH numbered AS (
        SELECT
            pid,
            tid,
            thread,
            ts_ns,
            stack,
            row_number() OVER (PARTITION BY pid, tid ORDER BY ts_ns) - 1 AS number,
            ceil(count(*) OVER (PARTITION BY pid, tid) / {SAMPLED_ZONES_SAMPLES})::BIGINT AS every
        FROM python.samples
    ),

    followed AS (
        SELECT
            *,
            number // every AS n,
            lead(ts_ns) OVER (PARTITION BY pid, tid ORDER BY ts_ns) AS next_ns
        FROM numbered
        WHERE number % every = 0
    ),

    kept AS (
        SELECT
            * EXCLUDE (next_ns),
            list_reverse(stack)[:{SAMPLED_ZONES_DEPTH}] AS frames,
            coalesce(
                next_ns,
                least(
                    ts_ns
                    + coalesce(median(next_ns - ts_ns) OVER (PARTITION BY pid, tid), 0)::BIGINT,
                    greatest(ts_ns, (SELECT max(duration_ns) FROM kymo.runs))
                )
            ) AS until_ns
        FROM followed
    ),

    frames AS (
        SELECT
            pid,
            tid,
            thread,
            ts_ns,
            until_ns,
            n,
            regexp_replace(unnest(frames), ':\d+\)$', ')') AS frame,
            generate_subscripts(frames, 1) - 1 AS depth
        FROM kept
    ),

    compared AS (
        SELECT
            *,
            lag(frame) OVER here IS DISTINCT FROM frame
            OR lag(n) OVER here IS DISTINCT FROM n - 1 AS differs
        FROM frames
        WINDOW here AS (PARTITION BY pid, tid, depth ORDER BY n)
    ),

    begun AS (
        SELECT *, bool_or(differs) OVER (PARTITION BY pid, tid, n ORDER BY depth) AS begins
        FROM compared
    ),

    zoned AS (
        SELECT *, sum(begins::INT) OVER (PARTITION BY pid, tid, depth ORDER BY n) AS zone
        FROM begun
    )

    SELECT
        'sample' AS source,
        regexp_replace(any_value(frame), ' \(.*\)$', '') AS name,
        regexp_extract(any_value(frame), ' \((.*)\)$', 1) AS file,
        NULL::INT AS line,
        min(ts_ns) AS start_ns,
        max(until_ns) - min(ts_ns) AS duration_ns,
        depth::INT AS depth,
        pid,
        tid,
        max(thread) AS thread,
        NULL::INT AS rank,
        0 AS step,
        false AS open
    FROM zoned
    GROUP BY pid, tid, depth, zone
)
