-- The settings that decide how often things are sampled, with their last values.
SELECT coalesce(string_agg(key || '=' || value, ', ' ORDER BY key), '')
FROM (
    SELECT key, arg_max("new", ts_ns) AS value
    FROM kymo.config
    WHERE regexp_matches(key, 'sampl|period|interval|rate')
    GROUP BY key
)
