-- What the stacks of samples are made of.
--
-- node       BIGINT   number of the frame in its place: the same function has many
-- parent     BIGINT   its caller's; 0: there is none
-- func       VARCHAR  the function
-- file       VARCHAR  its file
-- lineno     INTEGER  the line that ran
-- collector  INTEGER  the kymo that took the samples; numbers are its own
SELECT
    node,
    parent,
    name AS func,
    name_file AS file,
    lineno::INTEGER AS lineno,
    pid AS collector
FROM kymo_scan('python.frames')
