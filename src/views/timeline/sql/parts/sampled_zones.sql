-- Sampled stacks of an unmarked program as zones of the source 'sample': a table to select from.
-- Samples of a thread that follow each other with the same callers and the same function at a depth
-- become one zone, from the first of them to the first sample without it. Lines do not count, or
-- every loop would be cut into pieces. A thread with more than {SAMPLED_ZONES_SAMPLES} samples is
-- thinned evenly. The last sample of a thread lasts as long as most of them, within the run.
(
    WITH numbered AS (
        SELECT
            host,
            pid,
            tid,
            thread,
            ts_ns,
            stack,
            row_number() OVER (PARTITION BY host, pid, tid ORDER BY ts_ns) - 1 AS number,
            ceil(
                count(*) OVER (PARTITION BY host, pid, tid) / {SAMPLED_ZONES_SAMPLES}
            )::BIGINT AS every
        FROM {include timeline_samples}
    ),

    kept AS (
        SELECT * FROM numbered
        WHERE number % every = 0
    ),

    -- Texts are cut once for each distinct stack.
    texts AS (
        SELECT
            stack,
            regexp_replace(
                unnest(list_reverse(stack)[:{SAMPLED_ZONES_DEPTH}]), ':\d+\)$', ')'
            ) AS frame,
            generate_subscripts(stack[:{SAMPLED_ZONES_DEPTH}], 1) AS depth
        FROM (SELECT DISTINCT stack FROM kept)
    ),

    lists AS (
        SELECT stack, list(frame ORDER BY depth) AS frames
        FROM texts
        GROUP BY stack
    ),

    -- Two stacks share as many callers as beginnings.
    stacks AS (
        SELECT stack, any_value(frames) AS frames, list(hash(frames[:depth])) AS beginnings
        FROM (SELECT stack, frames, unnest(range(1, len(frames) + 1)) AS depth FROM lists)
        GROUP BY stack
    ),

    followed AS (
        SELECT
            host,
            pid,
            tid,
            thread,
            ts_ns,
            coalesce(stacks.frames, []) AS frames,
            coalesce(len(stacks.frames), 0) AS depth,
            lag(coalesce(len(stacks.frames), 0), 1, 0) OVER here AS depth_before,
            coalesce(
                len(list_intersect(stacks.beginnings, lag(stacks.beginnings) OVER here)), 0
            ) AS same,
            lead(ts_ns) OVER here AS next_ns
        FROM kept
        LEFT JOIN stacks USING (stack)
        WINDOW here AS (PARTITION BY host, pid, tid ORDER BY ts_ns)
    ),

    -- The depths at which a sample ends a zone, begins one, or both.
    changes AS (
        SELECT
            host,
            pid,
            tid,
            thread,
            ts_ns,
            unnest(range(same, greatest(depth, depth_before))) AS depth,
            unnest(frames[same + 1:]) AS frame -- NULL where it only ends one
        FROM followed
    ),

    ends AS (
        SELECT
            host,
            pid,
            tid,
            max(ts_ns) AS last_ns,
            least(
                max(ts_ns) + coalesce(median(next_ns - ts_ns), 0)::BIGINT,
                greatest(max(ts_ns), (SELECT max(duration_ns) FROM kymo.runs))
            ) AS end_ns
        FROM followed
        GROUP BY host, pid, tid
    ),

    zones AS (
        SELECT
            *,
            lead(ts_ns) OVER (PARTITION BY host, pid, tid, depth ORDER BY ts_ns) AS until_ns
        FROM changes
    )

    SELECT
        'sample' AS source,
        regexp_replace(frame, ' \(.*\)$', '') AS name,
        regexp_extract(frame, ' \((.*)\)$', 1) AS file,
        NULL::INT AS line,
        ts_ns AS start_ns,
        coalesce(until_ns, end_ns) - ts_ns AS duration_ns,
        depth::INT AS depth,
        host,
        pid,
        tid,
        thread,
        NULL::INT AS rank,
        0 AS step,
        false AS open
    FROM zones
    JOIN ends USING (host, pid, tid)
    WHERE frame IS NOT NULL
)
