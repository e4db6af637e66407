-- Exact totals of every region, whatever rows are still kept.
--
-- source       VARCHAR  who marked it: c, python, line, torch, device
-- name         VARCHAR  the region's name
-- count        BIGINT   zones that have ended, those no longer kept included
-- total_ns     BIGINT   their time in all
-- self_ns      BIGINT   that time without the zones inside of them
-- min_ns       BIGINT   the shortest
-- max_ns       BIGINT   the longest
-- mean_ns      DOUBLE   the mean
-- stddev_ns    DOUBLE   the standard deviation (n - 1); NULL for a single one
-- p50_ns       BIGINT   the median, from a histogram of 8 buckets to a power of two; NULL where
--         none was kept: beyond the first 256 regions of a thread
-- p90_ns       BIGINT   the 90th percentile, likewise
-- p99_ns       BIGINT   the 99th percentile, likewise
-- open         BIGINT   zones that are open now, or were when the process ended
-- pid          INTEGER  the process
-- instance     INTEGER  number of the timer or collector; NULL for others
-- own_cost_ns  BIGINT   what recording them cost in all: both ends of one and its part of the
--         totals, as measured at start-up; NULL where it was not measured
-- file         VARCHAR  where it is in the code; one of the places, if there are several.
--         Functions of Python in different files are rows of their own
-- line         INTEGER  the line in that file
SELECT
    source,
    name,
    count,
    total_ns,
    self_ns,
    min_ns,
    max_ns,
    mean_ns,
    stddev_ns,
    p50_ns,
    p90_ns,
    p99_ns,
    open,
    pid,
    instance,
    own_cost_ns,
    file,
    line
FROM kymo_meta('regions')
