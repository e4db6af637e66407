-- Allocation sites, with their live memory at the peak and at the end.
--
-- stack                    VARCHAR[]  frames, innermost first
-- live_bytes               BIGINT     bytes allocated at the site and not freed
-- at_peak_bytes            BIGINT     bytes live at the peak of the process
-- allocated_bytes          BIGINT     total bytes allocated
-- count                    BIGINT     number of allocations
-- at_peak_error_bytes      BIGINT     error of at_peak_bytes (two standard deviations); 0 if exact
-- at_peak_estimated_bytes  BIGINT     part of at_peak_bytes that comes from samples
-- churn_bytes              BIGINT     bytes freed within 1 ms of their allocation
-- site                     VARCHAR    innermost Python line, or the innermost function without
--                                     Python
-- tensor                   BOOLEAN    true for the memory of torch tensors
-- pid                      INTEGER    process ID
-- rank                     INTEGER    rank of the process; NULL outside a distributed run
-- host                     VARCHAR    host name
--
-- The memory live at a moment is the sum of all rows of its session up to then.
WITH
{include alloc_events},
{include alloc_levels},
tops AS MATERIALIZED (
    SELECT
        process_id,
        arg_max(session, live_bytes) AS peak_session,
        arg_max(ts_ns, live_bytes) AS peak_ns,
        max(session) AS last_session
    FROM levels
    GROUP BY process_id
),
{include alloc_unpacked},
weighted AS (
    SELECT
        u.*,
        u.size * u.weight AS bytes,
        u.session = t.last_session AS in_last,
        u.session = t.peak_session AND u.ts_ns <= t.peak_ns AS before_peak
    FROM unpacked u
    JOIN tops t ON t.process_id = u.process_id
),
nodes AS (
    SELECT
        process_id,
        node,
        sum(sign * bytes) FILTER (in_last) AS live_bytes,
        sum(sign * bytes) FILTER (before_peak) AS at_peak_bytes,
        sum(sign * size * bytes * (weight - 1)) FILTER (before_peak) AS at_peak_variance,
        sum(sign * bytes) FILTER (before_peak AND weight > 1) AS at_peak_estimated_bytes,
        sum(bytes) FILTER (sign > 0) AS allocated_bytes,
        sum(weight) FILTER (sign > 0) AS count,
        sum(bytes) FILTER (sign > 0 AND freed_ns - ts_ns < 1000000) AS churn_bytes
    FROM weighted
    GROUP BY process_id, node
),
{include alloc_stacks}
SELECT
    s.stack,
    round(coalesce(sum(n.live_bytes), 0))::BIGINT AS live_bytes,
    round(coalesce(sum(n.at_peak_bytes), 0))::BIGINT AS at_peak_bytes,
    round(sum(n.allocated_bytes))::BIGINT AS allocated_bytes,
    round(sum(n.count))::BIGINT AS count,
    round(2 * sqrt(greatest(0, coalesce(sum(n.at_peak_variance), 0))))::BIGINT
        AS at_peak_error_bytes,
    round(coalesce(sum(n.at_peak_estimated_bytes), 0))::BIGINT AS at_peak_estimated_bytes,
    round(coalesce(sum(n.churn_bytes), 0))::BIGINT AS churn_bytes,
    s.site,
    bool_or(s.tensor) AS tensor,
    p.pid,
    p.rank,
    p.host
FROM nodes n
JOIN kymo_meta('processes') p ON p.process_id = n.process_id
LEFT JOIN stacks s ON s.process_id = n.process_id AND s.node = n.node
GROUP BY n.process_id, p.pid, p.rank, p.host, s.stack, s.site
ORDER BY at_peak_bytes DESC
