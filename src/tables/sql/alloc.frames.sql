-- What the stacks of allocations are made of.
--
-- node    BIGINT   the frame's number in its process
-- parent  BIGINT   its caller's; 0: there is none
-- func    VARCHAR  the function
-- file    VARCHAR  where it is
-- lineno  INTEGER  the line that allocates; NULL outside of Python
-- pid     INTEGER  the process
SELECT
    node::BIGINT AS node,
    parent::BIGINT AS parent,
    name AS func,
    name_file AS file,
    nullif(lineno, 0)::INTEGER AS lineno,
    pid
FROM kymo_scan('alloc.frames')
