/*
 * Stops one thread of another process while its registers and stack are copied. PTRACE_SEIZE
 * without PTRACE_O_EXITKILL: if this process dies, the kernel continues the thread.
 */
#ifndef KYMO_COLLECT_NATIVE_PTRACE_STOP_H
#define KYMO_COLLECT_NATIVE_PTRACE_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STOP_REGISTERS 33 /* in DWARF numbering */
#define STOP_STACK_BYTES (512u << 10)

struct ptrace_stop {
	pid_t pid, tid;
	bool stopped;
	int signal; /* pending signal, delivered when the thread continues */
	uint64_t since_ns, took_ns;
	uint64_t registers[STOP_REGISTERS];
	size_t register_count;
	uint64_t pc, sp;
	unsigned char *stack; /* from sp upwards */
	size_t stack_bytes;
};

/* 0, or a negative errno: -EPERM: another debugger is attached, or ptrace is not allowed;
   -ETIMEDOUT: the thread does not stop, because it is in the kernel. Such a thread can only be
   released by the end of the calling thread, which should therefore be created for this call
   alone. */
int ptrace_stop_begin(struct ptrace_stop *stop, pid_t pid, pid_t tid);
/* Continues the thread and sets took_ns. Can be called twice. */
void ptrace_stop_end(struct ptrace_stop *stop);
void ptrace_stop_free(struct ptrace_stop *stop);

#endif
