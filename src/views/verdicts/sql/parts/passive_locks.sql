-- Kinds of locks in which a thread waits for work that another one does.
(
    'another thread', 'a Barrier', 'an Event', 'a queue', 'a full queue', 'a Future', 'a Condition',
    'the backward pass', 'a condition variable', 'a barrier', 'a semaphore',
    'a thread to start'
)
