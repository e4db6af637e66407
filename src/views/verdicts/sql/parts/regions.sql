-- trace.regions, with the file after the name of Python functions that exist in several files;
-- bare_name is without it.
(
    SELECT
        * EXCLUDE (name),
        name AS bare_name,
        CASE
            WHEN source = 'python' AND file IS NOT NULL
                AND min(file) OVER same <> max(file) OVER same
            THEN name || ' (' || {include file_place} || ')'
            ELSE name
        END AS name
    FROM trace.regions
    WINDOW same AS (PARTITION BY source, name)
)
