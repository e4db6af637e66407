-- The samples of all sources by the functions of the program's own code in their stacks. A sample
-- counts in one row with self: that of its innermost own function, or a row without a function if
-- no frame of its stack is own code. It counts in a row without self for every other own function
-- of its stack. A source is a part with these columns:
--
-- source, host, pid, function, file, line, self
-- running   whether the thread was on a CPU
-- samples   how many
-- time_ns   time that they stand for; NULL if it was not recorded
-- weight    for shares: that time, or the number of samples
--
-- Time that two sources sample is counted by one of them.
(
    {include places_python}
    UNION ALL
    {include places_native}
)
