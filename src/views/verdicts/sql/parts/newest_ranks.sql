-- dist.ranks, each with its last attempt, and heard_ns: the last data of the rank or of its
-- collector, which samples a rank that records nothing itself.
(
    SELECT r.*, greatest(r.last_ns, h.ns) AS heard_ns
    FROM (
        SELECT *
        FROM dist.ranks
        QUALIFY row_number() OVER (PARTITION BY rank ORDER BY attempt DESC NULLS LAST) = 1
    ) r
    LEFT JOIN (
        SELECT host, rank, max(ended_ns) AS ns
        FROM kymo.processes
        WHERE role = 'collector'
        GROUP BY host, rank
    ) h ON h.host = r.host AND h.rank IS NOT DISTINCT FROM (
        SELECT max(p.rank)
        FROM kymo.processes p
        WHERE p.role = 'collector' AND p.host = r.host AND p.rank = r.rank
    )
)
