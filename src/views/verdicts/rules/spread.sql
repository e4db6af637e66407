-- threshold: 0.15
-- weight: 0.5
-- needs: trace.steps
-- sentence: Some steps take much longer than others: time above the median adds up to {share} of
--     step time ({won} of {whole})[, mostly in {name}].
-- evidence: {count} steps take more than twice the median of {a}; the slowest takes {b}
-- advice: find what the slowest steps have in common[: {name} first]; kymo report lists them
-- zones_if: has_slow_steps
-- tab: timeline
-- query: SELECT step, start_ns, duration_ns FROM trace.steps ORDER BY duration_ns DESC
--
-- The name is the zone whose time grows most from other steps to slow ones; of several within 20 %
-- of the largest growth, the innermost. If no zone has half of the time, it is the function of the
-- program's own code whose time grows most, by samples; that function is the place in any case. A
-- recording has many more zones than steps: the zones are
-- read only if the steps spread, and only for the slow steps and about two thousand others.
-- On a machine whose cores others use, all of a step takes longer now and then. If the program was
-- ready without a core for a fifth of the run or more, the cause must be something that has a small
-- part of a usual step and a large one of the additional time.
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
), by_zone AS (
    SELECT
        name,
        max(depth) AS depth,
        coalesce(
            sum(z.duration_ns) FILTER (NOT slow)
            / nullif((SELECT count(*) FROM w WHERE NOT slow), 0),
            0
        ) AS usually,
        sum(z.duration_ns) FILTER (slow) / nullif((SELECT count(*) FROM w WHERE slow), 0) AS slowly
    FROM (SELECT step, host, pid, name, depth, duration_ns FROM {zones} AS all_zones) z
    JOIN (SELECT step, host, pid, duration_ns, slow FROM w) w
        ON z.step = w.step AND z.host = w.host AND z.pid = w.pid AND z.duration_ns <= w.duration_ns
    GROUP BY 1
), z AS (
    SELECT *, slowly - usually AS more
    FROM by_zone
), u AS (
    SELECT coalesce(max(delay_ns), 0) > 0.2 * {run_ns} AS crowded
    FROM (
        SELECT max(run_delay_ns) - min(run_delay_ns) AS delay_ns
        FROM host.threads
        GROUP BY host, pid, tid
    )
), v AS (
    FROM {include step_samples steps=w}
), e AS (
    SELECT
        avg(duration_ns - usual) FILTER (slow) AS more,
        avg(duration_ns) FILTER (NOT slow) AS usually
    FROM w
), by_function AS (
    SELECT
        mode(place) FILTER (slow) AS place,
        coalesce(
            sum(weight) FILTER (NOT slow)
            / nullif((SELECT count(*) FROM w WHERE NOT slow), 0),
            0
        ) AS usually,
        sum(weight) FILTER (slow) / (SELECT count(*) FROM w WHERE slow) AS slowly,
        count(*) FILTER (slow) AS n
    FROM v
    WHERE place IS NOT NULL
    GROUP BY {include place_function}
    HAVING n >= 3
), f AS (
    SELECT *, slowly - usually AS more
    FROM by_function
    ORDER BY more DESC
    LIMIT 1
)
SELECT
    sum(greatest(duration_ns - usual, 0)),
    sum(duration_ns),
    coalesce(
        (
            SELECT arg_max(name, depth)
            FROM z
            WHERE more > 0.8 * (SELECT max(more) FROM z)
                AND more > 0.5 * (SELECT more FROM e)
        ),
        (SELECT {include place_name} FROM f WHERE f.more > 0.2 * (SELECT more FROM e)),
        (SELECT arg_max(name, depth) FROM z WHERE more > 0.8 * (SELECT max(more) FROM z))
    ),
    count(*) FILTER (slow),
    any_value(usual),
    max(duration_ns),
    (SELECT place FROM f) AS place,
    (SELECT least(1, f.more / e.more) FROM f, e) AS place_share
FROM s
HAVING count(*) >= 20
    AND count(*) FILTER (slow) > 0
    AND (
        NOT (SELECT crowded FROM u)
        OR EXISTS (
            SELECT 1
            FROM (SELECT more, usually FROM z UNION ALL SELECT more, usually FROM f) AS x, e
            WHERE x.more > 0.3 * e.more AND x.usually < 0.2 * e.usually
        )
    )
