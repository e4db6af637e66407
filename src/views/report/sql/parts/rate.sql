-- The rate per second of the cumulative counter {value}, which is counted for each {per}.
({value} - lag({value}) OVER (PARTITION BY {per} ORDER BY ts_ns))
* 1e9
/ nullif(ts_ns - lag(ts_ns) OVER (PARTITION BY {per} ORDER BY ts_ns), 0)
