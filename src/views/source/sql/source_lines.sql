-- Time, calls and allocations by file and line. A row with line 0 is of the whole file: its samples
-- count once, however many of their frames are in it. A line counts once for each stack, too, as
-- recursion would count it twice. Self is the time of the innermost frame, for a line of own code
-- also that of the libraries that it calls, as in trace.places.
-- Allocations belong to the innermost frame that has a line.
-- Native code that Python calls is known from native samples alone; their Python frames do not
-- count, since the Python samples of the same threads do. placed: samples whose place is in the
-- file.
WITH all_stacks AS (
    SELECT stack, place, count(*) AS samples, sum(time_ns) AS ns, stack AS counted
    FROM {include sampled_threads}
    WHERE len(stack) > 0
    GROUP BY stack, place
    UNION ALL
    SELECT
        stack,
        place,
        count(*),
        sum(weight_ns),
        list_filter(stack, lambda f: NOT regexp_matches(f, {include frame_of_python}))
    FROM native.samples n
    WHERE len(stack) > 0 AND EXISTS (
        FROM python.samples p
        WHERE p.host = n.host AND p.pid = n.pid AND p.tid = n.tid
    )
    GROUP BY stack, place
), stacks AS MATERIALIZED (
    SELECT
        counted,
        stack[1] AS innermost,
        place,
        regexp_extract(place, {include frame_place}, 1) AS place_file,
        samples,
        ns
    FROM all_stacks
), frames AS (
    SELECT unnest(list_distinct(counted)) AS frame, innermost, place, samples, ns
    FROM stacks
), sampled AS (
    SELECT
        regexp_extract(frame, {include frame_place}, 1) AS file,
        try_cast(regexp_extract(frame, {include frame_place}, 2) AS INTEGER) AS line,
        sum(samples) FILTER (frame = innermost OR frame = place) AS self_samples,
        sum(samples) AS samples,
        sum(ns) FILTER (frame = innermost OR frame = place) AS self_ns,
        sum(ns) AS total_ns
    FROM frames
    GROUP BY frame
), files AS (
    SELECT
        file,
        sum(samples) AS samples,
        sum(ns) AS total_ns,
        sum(samples) FILTER (place_file = file) AS placed
    FROM (
        SELECT
            unnest(
                list_distinct(
                    list_transform(counted, lambda f: regexp_extract(f, {include frame_place}, 1))
                )
            ) AS file,
            place_file,
            samples,
            ns
        FROM stacks
    )
    GROUP BY file
), allocated AS (
    SELECT
        list_filter(stack, lambda f: regexp_matches(f, {include frame_place}))[1] AS frame,
        sum(allocated_bytes) AS bytes,
        sum(count) AS count,
        sum(at_peak_bytes) AS peak_bytes
    FROM alloc.sites
    GROUP BY 1
), parts AS (
    SELECT file, line, self_samples, samples, self_ns, total_ns,
        0 AS line_count, 0 AS line_ns, 0 AS line_self_ns, 0 AS calls, 0 AS calls_ns,
        0 AS calls_self_ns,
        0 AS alloc_bytes, 0 AS alloc_count, 0 AS peak_bytes, 0 AS placed
    FROM sampled
    UNION ALL
    SELECT file, 0, 0, samples, 0, total_ns, 0, 0, 0, 0, 0, 0, 0, 0, 0, placed
    FROM files
    UNION ALL
    SELECT file, line, 0, 0, 0, 0,
        CASE WHEN source = 'line' THEN count ELSE 0 END,
        CASE WHEN source = 'line' THEN total_ns ELSE 0 END,
        CASE WHEN source = 'line' THEN self_ns ELSE 0 END,
        CASE WHEN source = 'line' THEN 0 ELSE count END,
        CASE WHEN source = 'line' THEN 0 ELSE total_ns END,
        CASE WHEN source = 'line' THEN 0 ELSE self_ns END,
        0, 0, 0, 0
    FROM trace.regions
    WHERE file IS NOT NULL AND line > 0
    UNION ALL
    SELECT
        regexp_extract(frame, {include frame_place}, 1),
        try_cast(regexp_extract(frame, {include frame_place}, 2) AS INTEGER),
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, bytes, count, peak_bytes, 0
    FROM allocated
    WHERE frame IS NOT NULL
)
SELECT
    file,
    line,
    coalesce(sum(self_samples), 0) AS self_samples,
    sum(samples) AS samples,
    coalesce(sum(self_ns), 0) AS self_ns,
    sum(total_ns) AS total_ns,
    sum(line_count) AS line_count,
    sum(line_ns) AS line_ns,
    sum(line_self_ns) AS line_self_ns,
    sum(calls) AS calls,
    sum(calls_ns) AS calls_ns,
    sum(calls_self_ns) AS calls_self_ns,
    sum(alloc_bytes) AS alloc_bytes,
    sum(alloc_count) AS alloc_count,
    sum(peak_bytes) AS peak_bytes,
    coalesce(sum(placed), 0) AS placed
FROM parts
WHERE file <> '' AND line >= 0
GROUP BY file, line
ORDER BY file, line
LIMIT 100000
