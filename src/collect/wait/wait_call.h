/* The current system call of a thread, from /proc/PID/task/TID/syscall. */
#ifndef KYMO_COLLECT_WAIT_WAIT_CALL_H
#define KYMO_COLLECT_WAIT_WAIT_CALL_H

#include <stdint.h>
#include <sys/types.h>

struct wait_call {
	long number; /* -1: in the kernel outside of a system call (a fault, a signal) */
	uint64_t argument[6];
	uint64_t sp, pc; /* of the thread in user space; 0: not told */
};

/* Parses "running", "-1 …" and "202 0x7f… …". 0; 1: running; -EINVAL. */
int wait_call_parse(const char *text, struct wait_call *out);
/* The same for a thread; -EACCES: not readable. */
int wait_call_read(pid_t pid, pid_t tid, struct wait_call *out);

#endif
