-- The costliest place of the rows of trace.critical_path for which {rows} holds: one row as of
-- top_place, or none.
(
    WITH rows_of AS (
        SELECT {include path_place name=if(kind='host',name,NULL)} AS place, duration_ns AS weight
        FROM trace.critical_sums
        WHERE {rows}
    )
    FROM {include top_place from=rows_of}
)
