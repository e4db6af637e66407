-- The settings that decide how often things are sampled, with their last values. That
-- kymo chose the rate of samples itself is no setting: compare_sample_period has it.
SELECT coalesce(string_agg(key || '=' || value, ', ' ORDER BY key), '')
FROM (
    SELECT key, arg_max("new", ts_ns) AS value
    FROM kymo.config
    WHERE regexp_matches(key, 'sampl|period|interval|rate') AND key <> 'sampling'
    GROUP BY key
)
