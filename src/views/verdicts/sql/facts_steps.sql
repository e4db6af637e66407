-- The steps of the main loop: times, when they began and ended, and the sum of each phase.
SELECT
    count(*),
    median(duration_ns),
    quantile_cont(duration_ns, 0.99),
    min(duration_ns),
    max(duration_ns),
    sum(duration_ns),
    min(start_ns),
    max(start_ns + duration_ns),
    any_value(name),
    sum(data_ns),
    sum(forward_ns),
    sum(backward_ns),
    sum(optimizer_ns)
FROM {include steps}
