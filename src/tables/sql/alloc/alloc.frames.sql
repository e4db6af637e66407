-- Frames that the stacks of allocations consist of.
--
-- node    BIGINT   frame number in the process
-- parent  BIGINT   frame number of the caller; 0 for an outermost frame
-- func    VARCHAR  function
-- file    VARCHAR  file of the function
-- lineno  INTEGER  line that allocates; NULL outside Python
-- pid     INTEGER  process ID
-- rank    INTEGER  rank of the process; NULL outside a distributed run
-- host    VARCHAR  host name
SELECT
    node::BIGINT AS node,
    parent::BIGINT AS parent,
    name AS func,
    name_file AS file,
    nullif(lineno, 0)::INTEGER AS lineno,
    pid,
    rank,
    host
FROM kymo_scan('alloc.frames')
