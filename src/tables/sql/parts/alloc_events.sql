-- sessions and events, the common table expressions of all views of allocations. session counts how
-- often recording of allocations began. Rows stay packed, since there may be millions; the join by
-- ranges keeps only the few sessions in memory. Calls that are redirected while the program runs
-- miss libraries that are loaded later: these call the real functions until their constructors are
-- done.
sessions AS MATERIALIZED (
    SELECT
        process_id,
        ts_ns AS began_ns,
        lead(ts_ns, 1, {INT64_MAX}) OVER w AS until_ns,
        (count(*) FILTER (place & {SCHEMA_ALLOC_KIND_MASK} = {SCHEMA_ALLOC_BEGAN}) OVER w)::INTEGER
            AS session,
        (row_number() OVER ())::INTEGER AS part,
        'malloc, '
            || CASE WHEN what & {SCHEMA_ALLOC_SIZE_MASK} > 0 THEN 'sampled' ELSE 'exact' END
            || CASE WHEN what >> {SCHEMA_ALLOC_NODE_SHIFT} > 0
                THEN ', from the start'
                ELSE ', calls redirected (missed: constructors of libraries loaded later)'
            END AS source
    FROM kymo_scan('alloc.rows')
    WHERE place & {SCHEMA_ALLOC_KIND_MASK} IN ({SCHEMA_ALLOC_CHANGED}, {SCHEMA_ALLOC_BEGAN})
    WINDOW w AS (PARTITION BY process_id ORDER BY ts_ns)
),
events AS (
    SELECT t.process_id, t.ts_ns, t.place, t.what, coalesce(s.session, 0) AS session, s.part
    FROM kymo_scan('alloc.rows') t
    LEFT JOIN sessions s
        ON s.process_id = t.process_id
        AND t.ts_ns >= s.began_ns
        AND t.ts_ns < s.until_ns
    WHERE t.place & {SCHEMA_ALLOC_KIND_MASK}
        NOT IN ({SCHEMA_ALLOC_CHANGED}, {SCHEMA_ALLOC_BEGAN})
)
