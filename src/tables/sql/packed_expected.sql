-- The only view of a packed file, made anew, so that the texts of both are written by one DuckDB;
-- and the one of earlier versions.
ATTACH ':memory:' AS expected;
CREATE SCHEMA expected.trace;
USE expected.trace;
CREATE TABLE zone_rows AS
SELECT 0 AS start_ns, 0 AS duration_ns, 0 AS name_id, 0 AS depth, 0 AS thread_id, 0 AS step;
CREATE TABLE names AS
SELECT 0 AS name_id, '' AS source, '' AS name, '' AS file, 0 AS line, 0 AS instance;
CREATE TABLE zone_threads AS
SELECT 0 AS thread_id, 0 AS pid, 0 AS tid, '' AS thread, 0 AS rank, '' AS host;
{include packed_zones};
ATTACH ':memory:' AS expected_old;
CREATE SCHEMA expected_old.trace;
USE expected_old.trace;
CREATE TABLE zone_rows AS
FROM expected.trace.zone_rows;
CREATE TABLE names AS
FROM expected.trace.names;
CREATE TABLE zone_threads AS
FROM expected.trace.zone_threads;
{include packed_zones_old};
USE memory
