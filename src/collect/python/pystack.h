/*
 * Reads Python stacks of another process with process_vm_readv(). The process is never stopped, and
 * no code runs in it.
 *
 * The memory changes during the read, so a stack is accepted only after these checks. All memory
 * that may contain its frames is copied three times around one read of the thread's current frame,
 * in one system call:
 *
 *	copy 1, current frame, copy 2, copy 3
 *
 * The innermost frame is taken from copy 2, which was copied after its address was read, and must
 * be the same function in all copies. Its callers must be the same in copies 1 and 3, including the
 * instruction, so they were waiting for it all the time. The chain must end at the thread's root,
 * and frames must be adjacent on the data stack, with the sizes of their functions. Otherwise the
 * stack is read again. A program that calls faster than it can be copied never passes: after some
 * tries a stack of only the stable callers is accepted and marked as partial; otherwise the stack
 * is counted as missed.
 *
 * Each accepted stack is checked against the heads of its code objects, which are read after copy
 * 3: a code object may have been freed and another one made at its address. Those of the last stack
 * are read in the same system call, so that an unchanged stack, and one whose innermost line alone
 * has changed, needs one call.
 */
#ifndef KYMO_COLLECT_PYTHON_PYSTACK_H
#define KYMO_COLLECT_PYTHON_PYSTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/python/pycode.h"
#include "collect/python/pyfind.h"

#define PYSTACK_NAME_BYTES 64
#define PYSTACK_CHANGING "(changing)" /* stands for the frames that a partial stack lacks */
#define PYSTACK_DEEPEST 131072 /* frames; a deeper stack is missed */

struct pystack_frame {
	uint64_t address, code_address, instruction;
	const struct pycode *code; /* valid until the next read */
	int line; /* 0: none */
	uint8_t owner; /* as in CPython: 0 thread, 1 generator or coroutine */
	bool entry; /* called from C: a native frame of the interpreter loop begins here */
};

struct pystack_thread {
	uint64_t state; /* its PyThreadState */
	uint64_t ident; /* threading.get_ident() */
	pid_t tid; /* in its own pid namespace */
	bool gil; /* it holds the GIL */
	bool read; /* false: it could not be read in a consistent state */
	bool partial; /* inner frames changed during every read; these are their stable callers */
	bool ran; /* its instruction changed during the read, so it had a CPU */
	struct pystack_frame *frames; /* innermost first; valid until the next read */
	size_t frame_count;
	char name[PYSTACK_NAME_BYTES]; /* from Python; "": unknown */
};

struct pystack_stats {
	uint64_t samples; /* reads of all threads */
	uint64_t threads; /* accepted stacks */
	uint64_t partial; /* of these, without the innermost frames */
	uint64_t again; /* repeated tries */
	uint64_t missed; /* stacks given up */
	uint64_t calls; /* system calls that read memory */
};

struct pystack {
	pid_t pid;
	uint64_t starttime;
	int process_fd; /* a pidfd; -1: not available */
	struct pyfind python;
	struct pymemory memory;
	struct pycode_cache codes;
	struct pystack_thread *threads; /* of the last read */
	size_t thread_count;
	bool finalizing; /* Python is shutting down */
	/* a list of threads or interpreters leads back to itself, or is too long: some lack */
	bool cut;
	struct pystack_stats stats;
	struct pystack_inside *inside;
};

/* Finds Python in a process. Returns like pyfind_process(). Call pystack_close() in any case. */
int pystack_open(struct pystack *stack, pid_t pid, struct kymo_error *err);
/* Reads all threads. 0; -ESRCH: the process has ended or called exec; -EAGAIN: Python is not
   initialised or has ended; -EPERM, …: see *err. */
int pystack_read(struct pystack *stack, struct kymo_error *err);
/* Finds the names of threads that have none yet. */
void pystack_name_threads(struct pystack *stack);
/* Addresses of the GILs, one for each interpreter. */
size_t pystack_gil_count(const struct pystack *stack);
uint64_t pystack_gil(const struct pystack *stack, size_t at);
/* Addresses of the interpreters' states. */
size_t pystack_interpreter_count(const struct pystack *stack);
uint64_t pystack_interpreter(const struct pystack *stack, size_t at);
void pystack_close(struct pystack *stack);

#endif
