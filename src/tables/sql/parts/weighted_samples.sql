-- python.samples with the time in ns that each stands for (0: not periodic, or not recorded), and a
-- weight for shares: that time, or 1 for each where none was recorded. A file of an older version
-- lacks the column: its name is then that of the row beside it.
(
    SELECT s.*
    FROM (SELECT NULL::BIGINT AS weight_ns) AS unknown,
        LATERAL (
            SELECT
                *,
                coalesce(weight_ns, 0) AS time_ns,
                coalesce(weight_ns, 1) AS weight
            FROM python.samples
        ) AS s
)
