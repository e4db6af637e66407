-- Exact totals of every region, including zones whose rows are no longer kept.
--
-- source       VARCHAR  recorder of the region, as in trace.zones
-- name         VARCHAR  region name
-- count        BIGINT   number of ended zones, including those no longer kept
-- total_ns     BIGINT   total duration
-- self_ns      BIGINT   total duration without nested zones
-- min_ns       BIGINT   shortest duration
-- max_ns       BIGINT   longest duration
-- mean_ns      DOUBLE   mean duration
-- stddev_ns    DOUBLE   sample standard deviation (n - 1); NULL for a single zone
-- p50_ns       BIGINT   median, from a histogram with 8 buckets per power of two; NULL beyond the
--                       first 256 regions of a thread, which have no histogram
-- p90_ns       BIGINT   90th percentile, from the same histogram
-- p99_ns       BIGINT   99th percentile, from the same histogram
-- open         BIGINT   number of zones open now, or when the process ended
-- pid          INTEGER  process ID
-- instance     INTEGER  number of the timer or collector; NULL for other regions
-- own_cost_ns  BIGINT   cost of recording all of them: begin, end and totals, as measured at
--                       start-up; NULL if not measured
-- file         VARCHAR  source file; one of them if there are several. Python functions in
--                       different files have separate rows
-- line         INTEGER  line in that file
-- rank         INTEGER  rank of the process; NULL outside a distributed run
-- host         VARCHAR  host name
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
    line,
    rank,
    host
FROM kymo_meta('regions')
