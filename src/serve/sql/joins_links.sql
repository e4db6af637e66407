-- Forward and backward operators of which one began in a time range, on a thread unless {thread}
-- is negative; the longest way first.
SELECT rank, host, pid, from_tid, tid, from_name, to_name, from_ns, to_ns
FROM trace.links
WHERE
    (
        (from_ns BETWEEN {from} AND {to} AND ({thread} < 0 OR from_tid = {thread}))
        OR (to_ns BETWEEN {from} AND {to} AND ({thread} < 0 OR tid = {thread}))
    )
    AND {ranks}
    AND {pid}
ORDER BY to_ns - from_ns DESC
LIMIT {limit}
