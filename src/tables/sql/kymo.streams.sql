-- What was recorded and what was lost: emitted = kept + overwritten + dropped, for each stream.
--
-- table_name         VARCHAR  the table that the stream's rows belong to
-- pid                INTEGER  the process
-- emitted            BIGINT   rows that the program had to say: kept + overwritten + dropped
-- kept               BIGINT   rows that can be read
-- overwritten        BIGINT   rows that newer ones took the place of
-- dropped            BIGINT   rows that were never written
-- dropped_full       BIGINT   no room: the file system, the budget or a file limit
-- dropped_reentrant  BIGINT   attempted by a signal handler that interrupted recording
-- dropped_closed     BIGINT   after the thread had given its streams back
-- dropped_failed     BIGINT   no stream could be made: directory gone, no memory, too many
-- dropped_wide       BIGINT   a row that does not fit its table
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
    dropped_wide
FROM kymo_meta('streams')
