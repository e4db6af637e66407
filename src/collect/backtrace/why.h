/* What threads wait for, as sentences derived from /proc, locks in memory and Python frames. */
#ifndef KYMO_COLLECT_BACKTRACE_WHY_H
#define KYMO_COLLECT_BACKTRACE_WHY_H

#include "base/buf.h"
#include "collect/python/pystack.h"
#include "collect/backtrace/stacks.h"
#include "collect/wait/wait_call.h"
#include "collect/wait/wait_fd.h"

/* Fills .why of every thread. stack: read at the same time; NULL: no Python. */
void why_explain(struct stacks *stacks, const struct pystack *stack);

/* why_lock.c: finds the lock at a futex. */
struct why_lock {
	const char *kind; /* NULL: unknown */
	uint64_t holder_state; /* PyThreadState of the holder; 0: unknown */
	pid_t holder_tid; /* of the holder, in its pid namespace; 0: unknown */
	char holder_at[256]; /* function of the holder that acquired it; "": unknown */
};
void why_find_lock(const struct pystack *stack, const struct stacks *stacks,
		   const struct stacks_thread *waiter, uint64_t futex, struct why_lock *out);
/* why_loop.c: adds the function in which a thread blocks the event loop that it runs. */
void why_add_loop(struct buf *out, const struct stacks_thread *thread);
/* The PyThreadState of the thread that a Python thread joins; 0: none or unknown. */
uint64_t why_find_joined(const struct pystack *stack, const struct stacks_thread *waiter);

#endif
