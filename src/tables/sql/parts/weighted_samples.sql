-- python.samples with the time in ns that each stands for (0: not periodic, or not recorded), and a
-- weight for shares: that time, or 1 for each where none was recorded; and what the thread did and
-- waited for. A file of an older version lacks these columns: their names are then those of the
-- row beside it, and a thread that waited waits for something unknown.
(
    SELECT s.*
    FROM (
        SELECT
            NULL::BIGINT AS weight_ns,
            NULL::VARCHAR AS activity,
            NULL::VARCHAR AS waits_for
    ) AS unknown,
        LATERAL (
            SELECT
                *,
                coalesce(weight_ns, 0) AS time_ns,
                coalesce(weight_ns, 1) AS weight,
                coalesce(activity, CASE state WHEN 'R' THEN 'running' ELSE 'wait' END) AS doing,
                coalesce(waits_for, '') AS target
            FROM python.samples
        ) AS s
)
