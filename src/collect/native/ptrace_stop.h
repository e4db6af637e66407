/*
 * Holds one thread of another process for as long as it takes to copy its registers and stack.
 * PTRACE_SEIZE without PTRACE_O_EXITKILL: if we die, whatever kills us, the kernel lets the thread
 * go on.
 */
#ifndef KYMO_COLLECT_NATIVE_PTRACE_STOP_H
#define KYMO_COLLECT_NATIVE_PTRACE_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HOLD_REGISTERS 33 /* as DWARF numbers them */
#define HOLD_STACK_BYTES (512u << 10)

struct ptrace_stop {
	pid_t pid, tid;
	bool held;
	int signal; /* that it was about to get: handed on when it is let go */
	uint64_t since_ns, took_ns;
	uint64_t registers[HOLD_REGISTERS];
	size_t register_count;
	uint64_t pc, sp;
	unsigned char *stack; /* from sp on */
	size_t stack_bytes;
};

/* 0, or a negative errno: -EPERM: a debugger has it, or it is not allowed; -ETIMEDOUT: it does not
   stop, since it waits in the kernel. A thread that does not stop cannot be let go either: the
   kernel does it when the calling thread ends, so that is to be one made for it alone. */
int ptrace_stop_begin(struct ptrace_stop *hold, pid_t pid, pid_t tid);
/* Lets it go on; notes for how long it was held. Safe to call twice. */
void ptrace_stop_end(struct ptrace_stop *hold);
void ptrace_stop_free(struct ptrace_stop *hold);

#endif
