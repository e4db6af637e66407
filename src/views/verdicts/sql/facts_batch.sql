-- The mean batch size and its unit, from the counters with the usual names.
SELECT
    avg(value),
    CASE WHEN name LIKE '%tokens' THEN 'tokens' ELSE 'samples' END
FROM trace.counters
WHERE name IN ('batch_size', 'batch_tokens', 'tokens')
GROUP BY name
ORDER BY name <> 'batch_size'
LIMIT 1
