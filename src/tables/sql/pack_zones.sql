-- The zones of a packed file: narrow rows sorted by start, the names and threads that they refer
-- to, and trace.zones as a view of the three. {name_type} and {thread_type} are the narrowest types
-- that hold the numbers, since sorting moves them.
CREATE TABLE packed.trace.zone_rows AS
SELECT
    start_ns,
    duration_ns,
    name_id::{name_type} AS name_id,
    depth::USMALLINT AS depth,
    thread_id::{thread_type} AS thread_id,
    step::UINTEGER AS step
FROM kymo_scan('trace.zones')
ORDER BY start_ns;

CREATE TABLE packed.trace.names AS
FROM kymo_meta('names');

CREATE TABLE packed.trace.zone_threads AS
SELECT thread_id, pid, tid, thread, rank, host
FROM kymo_meta('all_threads');

USE packed.trace;
{include packed_zones};
USE rec;
