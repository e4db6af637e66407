-- Regions by name, times in ms. If a region has several rows (processes, places in the code), the
-- standard deviation is pooled, and the quantiles are those of the row with the most calls.
SELECT
    name,
    any_value(source),
    sum(count) AS n,
    sum(total_ns) / 1e6 AS total,
    sum(total_ns) / sum(count) / 1e6 AS mean,
    CASE
        WHEN count(*) = 1 THEN coalesce(any_value(stddev_ns), 0)
        ELSE coalesce(
            sqrt(
                greatest(
                    (
                        sum(
                            (count - 1) * coalesce(stddev_ns, 0) ** 2
                            + count * (total_ns::DOUBLE / count) ** 2
                        )
                        - sum(count) * (sum(total_ns)::DOUBLE / sum(count)) ** 2
                    )
                    / nullif(sum(count) - 1, 0),
                    0
                )
            ),
            0
        )
    END / 1e6,
    min(min_ns) / 1e6,
    max(max_ns) / 1e6,
    arg_max(p50_ns, count) / 1e6,
    arg_max(p90_ns, count) / 1e6,
    arg_max(p99_ns, count) / 1e6,
    NULL
FROM {include regions}
WHERE count > 0 AND name IS NOT NULL
GROUP BY name
ORDER BY sum(self_ns) DESC, name
