-- The costliest function of the program's own code in rows with place and weight: one row with its
-- costliest line and its part of the weight of all rows; none if no row has a place.
(
    SELECT
        arg_max(place, weight) AS place,
        least(1, sum(weight) / any_value(whole)) AS share,
        sum(n) AS n
    FROM (
        SELECT place, sum(weight) AS weight, sum(sum(weight)) OVER () AS whole, count(*) AS n
        FROM {from}
        GROUP BY place
    )
    WHERE place IS NOT NULL AND whole > 0
    GROUP BY {include place_function}
    ORDER BY sum(weight) DESC
    LIMIT 1
)
