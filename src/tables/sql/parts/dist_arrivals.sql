-- arrivals and lateness, the common table expressions of late ranks. An arrival is that of a rank
-- at a collective in which at least two of its group took part; lateness is one row for each
-- collective: the rank that came last, how long after the median, and how long the others waited.
-- What a rank spent in sends, receives and other groups since the call before, beyond the median of
-- the ranks, is not its own lateness: it waited for a rank that is charged elsewhere.
-- Of more than 2^20 calls of all ranks, one block of 64 collectives in `blocks` is read: all of
-- 1,000 ranks times 10,000 collectives would take gigabytes. Sums are multiplied by `blocks`.
every AS MATERIALIZED (
    SELECT greatest(1, (count(*) + 1048575) // 1048576)::BIGINT AS blocks
    FROM dist.collectives
),
calls AS NOT MATERIALIZED (
    SELECT
        *,
        greatest(coalesce(end_ns - arrival_ns, 0), 0) AS spent_ns,
        sum(greatest(coalesce(end_ns - arrival_ns, 0), 0)) OVER (
            PARTITION BY host, pid ORDER BY arrival_ns
        ) AS all_spent_ns
    FROM dist.collectives
    WHERE arrival_ns IS NOT NULL AND rank IS NOT NULL
        AND (seq // 64 % (SELECT blocks FROM every) = 0 OR seq IS NULL OR p2p)
),
arrivals AS MATERIALIZED (
    SELECT
        rank,
        host,
        pid,
        group_name,
        seq,
        op,
        step,
        arrival_ns,
        end_ns,
        count(*) OVER w AS present,
        max(arrival_ns) OVER w AS last_ns,
        lag(end_ns) OVER (
            PARTITION BY host, pid ORDER BY arrival_ns
        ) AS before_ns,
        all_spent_ns - spent_ns - lag(all_spent_ns) OVER (
            PARTITION BY host, pid, group_name ORDER BY arrival_ns
        ) AS elsewhere_ns
    FROM calls
    WHERE seq IS NOT NULL AND NOT p2p
    WINDOW w AS (PARTITION BY group_name, seq)
),
lateness AS (
    SELECT
        group_name,
        seq,
        any_value(op) AS op,
        any_value(present) AS present,
        arg_max(rank, arrival_ns) AS rank,
        arg_max(host, arrival_ns) AS host,
        arg_max(pid, arrival_ns) AS pid,
        max(arrival_ns) AS arrival_ns,
        arg_max(before_ns, arrival_ns) AS before_ns,
        greatest(
            max(arrival_ns) - quantile_disc(arrival_ns, 0.5) - greatest(
                coalesce(
                    arg_max(elsewhere_ns, arrival_ns) - quantile_disc(elsewhere_ns, 0.5), 0
                ), 0
            ), 0
        )::BIGINT AS late_ns,
        sum(last_ns - arrival_ns)::BIGINT AS waited_ns,
        any_value(step) AS step
    FROM arrivals
    WHERE present > 1
    GROUP BY group_name, seq
)
