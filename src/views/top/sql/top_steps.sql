-- The steps of the main loop that ended in the last seconds, of one process, and all of them.
WITH s AS (
    SELECT *
    FROM {include steps}
)
SELECT
    count(*) FILTER (recent),
    median(duration_ns) FILTER (recent),
    quantile_cont(duration_ns, 0.99) FILTER (recent),
    sum(duration_ns) FILTER (recent),
    sum(data_ns) FILTER (recent),
    sum(forward_ns) FILTER (recent),
    sum(backward_ns) FILTER (recent),
    sum(optimizer_ns) FILTER (recent),
    max(step),
    max(start_ns + duration_ns),
    max(start_ns + duration_ns) FILTER (recent) - min(start_ns) FILTER (recent)
FROM (SELECT *, start_ns + duration_ns >= {from_ns} AS recent FROM s)
