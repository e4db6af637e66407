-- threshold: 0.15
-- weight: 0.5
-- sentence: Some steps take much longer than others: time above the median adds up to {share} of
--     step time ({won} of {whole})[, mostly in {name}].
-- evidence: {count} steps take more than twice the median of {a}; the slowest takes {b}
-- advice: find what the slowest steps have in common[: {name} first]; kymo report lists them
-- tab: timeline
-- query: SELECT step, start_ns, duration_ns FROM trace.steps ORDER BY duration_ns DESC
--
-- The name is the zone whose time grows most from other steps to slow ones; of several within 20 %
-- of the largest growth, the innermost. A recording has many more zones than steps: the zones are
-- read only if the steps spread, and only for the slow steps and about two thousand others.
WITH s AS (
    SELECT
        *,
        duration_ns > 2 * usual AS slow,
        slow OR n % greatest(1, c // 2000) = 0 AS taken
    FROM {include numbered_steps}
    WHERE n > warm
), w AS (
    SELECT *
    FROM s
    WHERE taken
        AND (
            SELECT
                bool_or(slow)
                AND sum(greatest(duration_ns - usual, 0)) > 0.1 * sum(duration_ns)
            FROM s
        )
), z AS (
    SELECT
        name,
        max(depth) AS depth,
        sum(z.duration_ns) FILTER (slow) / nullif((SELECT count(*) FROM w WHERE slow), 0)
        - coalesce(
            sum(z.duration_ns) FILTER (NOT slow)
            / nullif((SELECT count(*) FROM w WHERE NOT slow), 0),
            0
        ) AS more
    FROM (SELECT step, pid, name, depth, duration_ns FROM trace.zones) z
    JOIN (SELECT step, pid, duration_ns, slow FROM w) w
        ON z.step = w.step AND z.pid = w.pid AND z.duration_ns <= w.duration_ns
    GROUP BY 1
)
SELECT
    sum(greatest(duration_ns - usual, 0)),
    sum(duration_ns),
    (SELECT arg_max(name, depth) FROM z WHERE more > 0.8 * (SELECT max(more) FROM z)),
    count(*) FILTER (slow),
    any_value(usual),
    max(duration_ns)
FROM s
HAVING count(*) >= 20 AND count(*) FILTER (slow) > 0
