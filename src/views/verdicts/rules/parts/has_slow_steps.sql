-- Whether some steps take more than twice the median, and together a tenth more than that.
SELECT
    (
        coalesce(bool_or(duration_ns > 2 * usual), false)
        AND sum(greatest(duration_ns - usual, 0)) > 0.1 * sum(duration_ns)
    )::INT
FROM {include numbered_steps}
WHERE n > warm
