-- Steps with n, their number from 1 in order of time; c, how many there are; usual, their median
-- duration; and warm: how many of the first are warm-up, a twentieth of them, 1 to 10.
(
    SELECT
        *,
        row_number() OVER (ORDER BY start_ns) AS n,
        count(*) OVER () AS c,
        median(duration_ns) OVER () AS usual,
        least(10, greatest(1, c // 20)) AS warm
    FROM {include steps}
)
