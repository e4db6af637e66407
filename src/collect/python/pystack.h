/*
 * Python stacks of another process, by process_vm_readv(): the process is never stopped, and
 * nothing runs in it.
 *
 * What is read changes while it is read, so a stack counts only if this holds. All memory that may
 * hold its frames is copied three times around one look at the thread's current frame, in one
 * system call:
 *
 *	copy 1, current frame, copy 2, copy 3
 *
 * The innermost frame is taken from copy 2, after its place was known, and must be the same
 * function in all; its callers must be the same in copies 1 and 3, instruction included, so they
 * were there, waiting for it, all the time; the chain must end at the thread's root; and frames
 * must lie on the data stack exactly one behind the other, as their functions' sizes say. Else it
 * is read again. A program that calls faster than it can be copied is never the same for long:
 * after some tries the callers that are alone are taken, and told to be all that was seen; else it
 * is counted as missed.
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
#define PYSTACK_CHANGING "(changing)" /* said for what a partial stack lacks */
#define PYSTACK_DEEPEST 131072 /* frames; a deeper stack is missed */

struct pystack_frame {
	uint64_t address, code_address, instruction;
	const struct pycode *code; /* valid until the next read */
	int line; /* 0: none */
	uint8_t owner; /* as CPython has it: 0 thread, 1 generator or coroutine */
	bool entry; /* called from C: a native frame of the interpreter begins here */
};

struct pystack_thread {
	uint64_t state; /* its PyThreadState */
	uint64_t ident; /* threading.get_ident() */
	pid_t tid; /* in its own pid namespace; see pystack.inner */
	bool gil; /* it holds the GIL */
	bool read; /* false: it could not be read in a consistent state */
	bool partial; /* further in it changed all the time: these are the callers, which did not */
	struct pystack_frame *frames; /* the innermost first; valid until the next read */
	size_t frame_count;
	char name[PYSTACK_NAME_BYTES]; /* Python's name of it; "": not known */
};

struct pystack_stats {
	uint64_t samples; /* reads of all threads */
	uint64_t threads; /* stacks that were accepted */
	uint64_t partial; /* of these, without what was innermost */
	uint64_t again; /* tries that had to be repeated */
	uint64_t missed; /* stacks that were given up */
	uint64_t calls; /* system calls that read memory */
};

struct pystack {
	pid_t pid;
	uint64_t starttime;
	int process_fd; /* a pidfd; -1: none to be had */
	struct pyfind python;
	struct pymemory memory;
	struct pycode_cache codes;
	struct pystack_thread *threads; /* of the last read */
	size_t thread_count;
	bool finalizing; /* Python is on its way out */
	struct pystack_stats stats;
	struct pystack_inside *inside;
};

/* Finds Python in a process. 0 or as pyfind_process(); pystack_close() in any case. */
int pystack_open(struct pystack *stack, pid_t pid, struct kymo_error *err);
/* Reads all threads. 0; -ESRCH: the process is gone (or is another one now); -EAGAIN: Python has no
   threads yet, or none any more; -EPERM, …: *err says it. */
int pystack_read(struct pystack *stack, struct kymo_error *err);
/* Looks up Python's names of threads that have none yet. */
void pystack_name_threads(struct pystack *stack);
/* Addresses of the GILs: one for each interpreter. */
size_t pystack_gil_count(const struct pystack *stack);
uint64_t pystack_gil(const struct pystack *stack, size_t at);
/* Addresses of the interpreters' states. */
size_t pystack_interpreter_count(const struct pystack *stack);
uint64_t pystack_interpreter(const struct pystack *stack, size_t at);
void pystack_close(struct pystack *stack);

#endif
