-- Calls of modules from the first step after warm-up on.
SELECT module || ' ' || stage, duration
FROM python.torch_trace
WHERE ts_ns >= {from}
ORDER BY ts_ns
