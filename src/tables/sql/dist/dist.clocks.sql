-- Clocks of the ranks and how their times came onto one axis.
--
-- rank         INTEGER  global rank
-- host         VARCHAR  host name
-- clock        INTEGER  ranks with the same number share a clock: those of one host
-- t0_ns        BIGINT   time by the rank's own clock from which the row counts; 0 if not fitted
-- offset_ns    BIGINT   how far the rank's own clock is ahead at t0_ns
-- drift_ppm    DOUBLE   how much faster it runs, in millionths
-- error_ns     BIGINT   the aligned times are right within this, from the first collective to the
--                       last; NULL if not known
-- collectives  BIGINT   number of collectives that were used
-- method       VARCHAR  same clock (the reference, or one host), collectives, wall clock (no
--                       collectives with others) or refused (see reason)
-- applied      BOOLEAN  true if the times of the rank were changed
-- reason       VARCHAR  why it was refused; NULL if it was not
--
-- An own time t became t - offset_ns - drift_ppm / 1e6 * (t - t0_ns). A rank has several rows if
-- its clock made steps. Times of an imported trace stay as they are unless the offset exceeds its
-- error.
SELECT DISTINCT
    p.rank,
    p.host,
    c.clock,
    c.t0_ns,
    c.offset_ns,
    round(c.drift_ppm, 4) AS drift_ppm,
    c.error_ns,
    c.collectives,
    c.method,
    c.applied,
    c.reason
FROM kymo_meta('clocks') c
JOIN kymo_meta('processes') p USING (process_id)
WHERE p.rank IS NOT NULL AND p.role = 'target'
ORDER BY p.rank, p.host, c.t0_ns
