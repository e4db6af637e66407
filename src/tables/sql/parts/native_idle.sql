-- Whether a native sample is of a thread that waits for work of others, whose own time counts: a
-- worker of a pool, a thread that joins another, a server without requests.
coalesce(
    activity = 'wait'
    OR waits_for IN ('a condition variable', 'another thread', 'a barrier', 'a semaphore')
    OR starts_with(waits_for, 'listening'),
    false
)
