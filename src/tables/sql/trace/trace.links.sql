-- Forward operators of torch and the backward operators that belong to them, in imported traces.
--
-- from_ns    BIGINT   start of the forward operator, in ns since the recording began
-- to_ns      BIGINT   start of the backward operator
-- from_name  VARCHAR  forward operator
-- to_name    VARCHAR  backward operator
-- sequence   BIGINT   sequence number of autograd
-- from_tid   INTEGER  kernel thread ID of the forward operator
-- pid        INTEGER  process ID
-- tid        INTEGER  kernel thread ID of the backward operator
-- thread     VARCHAR  thread name of the backward operator
-- rank       INTEGER  rank of the process; NULL outside a distributed run
-- host       VARCHAR  host name
SELECT
    from_ns,
    to_ns,
    from_name,
    to_name,
    sequence::BIGINT AS sequence,
    from_tid,
    pid,
    tid,
    thread,
    rank,
    host
FROM kymo_scan('trace.links')
