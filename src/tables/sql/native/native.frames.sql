-- Frames that the stacks of native samples consist of.
--
-- node       BIGINT   frame number; the same function has one for each line and caller
-- parent     BIGINT   frame number of the caller; 0 for an outermost frame
-- func       VARCHAR  function; library+0xaddress if it has no name
-- file       VARCHAR  source file; the library if there is no debug information
-- lineno     INTEGER  line that was executed; 0 if not known
-- module     VARCHAR  path of the program or library; NULL for Python and compiled code
-- inlined    BOOLEAN  true if the function was inlined into its caller
-- source     VARCHAR  c or python
-- collector  INTEGER  process ID of the collector, which numbers its frames independently
SELECT
    node,
    parent,
    name AS func,
    name_file AS file,
    lineno::INTEGER AS lineno,
    module,
    (flags & {SCHEMA_NATIVE_INLINED}) > 0 AS inlined,
    name_source AS source,
    pid AS collector
FROM kymo_scan('native.frames')
