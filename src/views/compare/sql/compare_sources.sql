-- The sources that recorded at least {least} zones: they differ if one run was traced more closely.
SELECT coalesce(string_agg(source, ' ' ORDER BY source), '')
FROM (
    SELECT source
    FROM trace.regions
    GROUP BY source
    HAVING sum(count) >= {least}
)
