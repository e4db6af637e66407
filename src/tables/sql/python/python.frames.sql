-- Frames that the stacks of samples consist of.
--
-- node       BIGINT   frame number; the same function has one for each line and caller
-- parent     BIGINT   frame number of the caller; 0 for an outermost frame
-- func       VARCHAR  function
-- file       VARCHAR  file of the function
-- lineno     INTEGER  line that was executed
-- collector  INTEGER  process ID of the collector, which numbers its frames independently
-- host       VARCHAR  host name
SELECT
    node,
    parent,
    name AS func,
    name_file AS file,
    lineno::INTEGER AS lineno,
    pid AS collector,
    host
FROM kymo_scan('python.frames')
