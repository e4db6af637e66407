-- The time that all samples stand for; 0 if no weights were recorded.
SELECT coalesce(sum(time_ns), 0) FROM {include sampled_threads}
