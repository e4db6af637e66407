-- The only view of a packed file, made anew, so that the texts of both are written by one DuckDB.
ATTACH ':memory:' AS expected;
CREATE SCHEMA expected.trace;
USE expected.trace;
CREATE TABLE zone_rows AS
SELECT 0 AS start_ns, 0 AS duration_ns, 0 AS name_id, 0 AS depth, 0 AS thread_id, 0 AS step;
CREATE TABLE names AS
SELECT 0 AS name_id, '' AS source, '' AS name, '' AS file, 0 AS line, 0 AS instance;
CREATE TABLE zone_threads AS
SELECT 0 AS thread_id, 0 AS pid, 0 AS tid, '' AS thread, 0 AS rank;
{include packed_zones};
USE memory
