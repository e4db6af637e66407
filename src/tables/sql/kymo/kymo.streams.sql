-- Recorded and lost rows of each stream: emitted = kept + overwritten + dropped.
--
-- table_name         VARCHAR  table of the stream's rows
-- pid                INTEGER  process ID
-- emitted            BIGINT   rows the program tried to write: kept + overwritten + dropped
-- kept               BIGINT   rows that can be read
-- overwritten        BIGINT   rows replaced by newer ones, and rows on disk that the budget or
--                             kymo run --keep removed or thinned
-- dropped            BIGINT   rows that were never written; the following columns give the causes
-- dropped_full       BIGINT   rows for which there was no room: file system, budget or file limit
-- dropped_reentrant  BIGINT   rows of a signal handler that interrupted recording
-- dropped_closed     BIGINT   rows written after the thread had released its streams
-- dropped_failed     BIGINT   rows whose stream could not be created: directory gone, no memory,
--                             too many
-- dropped_wide       BIGINT   rows that do not fit their table
-- rank               INTEGER  rank of the process; NULL outside a distributed run
-- host               VARCHAR  host name
SELECT
    table_name,
    pid,
    emitted,
    kept,
    overwritten,
    dropped,
    dropped_full,
    dropped_reentrant,
    dropped_closed,
    dropped_failed,
    dropped_wide,
    rank,
    host
FROM kymo_meta('streams')
