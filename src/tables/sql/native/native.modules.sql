-- Programs and libraries in which frames of native samples are, with the files that their names
-- are from.
--
-- pid           INTEGER  process ID
-- path          VARCHAR  path of the program or library, as the process mapped it
-- build_id      VARCHAR  build id in hexadecimal digits; NULL if the file has none
-- load_address  UBIGINT  added to an address of the file to get the one in the process
-- symbols       VARCHAR  source of the functions' names: symbol table, dynamic (exported functions
--                        only), debug file (found by its build id), none, or unreadable
-- lines         BOOLEAN  true if there is debug information with source lines
-- collector     INTEGER  process ID of the collector
-- host          VARCHAR  host name
SELECT
    target_pid AS pid,
    path,
    build_id,
    load_address,
    symbols,
    lines > 0 AS lines,
    pid AS collector,
    host
FROM kymo_scan('native.modules')
