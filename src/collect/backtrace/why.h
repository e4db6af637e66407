/* What threads wait for, as sentences derived from /proc, locks in memory and Python frames. */
#ifndef KYMO_COLLECT_BACKTRACE_WHY_H
#define KYMO_COLLECT_BACKTRACE_WHY_H

#include "collect/python/pystack.h"
#include "collect/backtrace/stacks.h"

/* The current system call of a thread, from /proc/PID/task/TID/syscall. */
struct why_call {
	long number; /* -1: in the kernel outside of a system call (a fault, a signal) */
	uint64_t argument[6];
};

/* Parses "running", "-1 …" and "202 0x7f… …". 0; 1: running; -EINVAL. */
int why_parse_call(const char *text, struct why_call *out);
/* The same for a thread; -EACCES: not readable. */
int why_read_call(pid_t pid, pid_t tid, struct why_call *out);
/* Fills .why of every thread. stack: read at the same time; NULL: no Python. */
void why_explain(struct stacks *stacks, const struct pystack *stack);

/* why_fd.c: appends a description of a descriptor: a file, a pipe, a socket with its addresses. */
void why_describe_fd(struct buf *out, pid_t pid, long fd);

/* why_lock.c: finds the lock at a futex. */
struct why_lock {
	const char *kind; /* NULL: unknown */
	uint64_t holder_state; /* PyThreadState of the holder; 0: unknown */
	pid_t holder_tid; /* of the holder, in its pid namespace; 0: unknown */
	char holder_at[256]; /* function of the holder that acquired it; "": unknown */
};
void why_find_lock(const struct pystack *stack, const struct stacks *stacks,
		   const struct stacks_thread *waiter, uint64_t futex, struct why_lock *out);
/* The PyThreadState of the thread that a Python thread joins; 0: none or unknown. */
uint64_t why_find_joined(const struct pystack *stack, const struct stacks_thread *waiter);

#endif
