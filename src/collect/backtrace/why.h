/* What threads wait for: sentences made from /proc, from locks in memory, and from Python's
   frames. */
#ifndef KYMO_COLLECT_BACKTRACE_WHY_H
#define KYMO_COLLECT_BACKTRACE_WHY_H

#include "collect/python/pystack.h"
#include "collect/backtrace/stacks.h"

/* A call that a thread is in, from /proc/PID/task/TID/syscall. */
struct why_call {
	long number; /* -1: in the kernel without a call (a fault, a signal) */
	uint64_t argument[6];
};

/* "running", "-1 …" and "202 0x7f… …". 0; 1: it runs; -EINVAL. */
int why_parse_call(const char *text, struct why_call *out);
/* The same of a thread; -EACCES: the kernel does not say it. */
int why_read_call(pid_t pid, pid_t tid, struct why_call *out);
/* Fills .why of every thread. stack: of the same moment; NULL: no Python. */
void why_explain(struct stacks *stacks, const struct pystack *stack);

/* whyfd.c: appends what a descriptor is: a file, a pipe, a socket with its ends. */
void why_describe_fd(struct buf *out, pid_t pid, long fd);

/* whylock.c: the lock at that futex. */
struct why_lock {
	const char *kind; /* NULL: nothing is known of it */
	uint64_t holder_state; /* PyThreadState of who holds it; 0: not known */
	pid_t holder_tid; /* of who holds it, as the program counts; 0: not known */
	char holder_at[256]; /* function of the holder that took it; "": not known */
};
void why_find_lock(const struct pystack *stack, const struct stacks *stacks,
		   const struct stacks_thread *waiter, uint64_t futex, struct why_lock *out);
/* The PyThreadState of the thread that this one of Python joins; 0: none, or not known. */
uint64_t why_find_joined(const struct pystack *stack, const struct stacks_thread *waiter);

#endif
