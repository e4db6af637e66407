/* The current stacks of a process: every thread, with its state in Python and in the kernel. */
#ifndef KYMO_COLLECT_BACKTRACE_STACKS_H
#define KYMO_COLLECT_BACKTRACE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/python/pystack.h"

struct stacks_local {
	char *name, *value;
};

struct stacks_frame {
	char *func; /* qualified name; for a native frame the demangled symbol or module+offset */
	char *file; /* for a native frame the source file if known, else the module */
	int line; /* 0: unknown */
	bool native;
	struct stacks_local *locals;
	size_t local_count;
};

/* A task of asyncio that is not running, listed with the thread of its event loop. */
struct stacks_task {
	char *name;
	/* the type of the future it waits for; NULL: none, it is ready to run */
	char *waits_for;
	bool begun;
	bool missed; /* it changed during every read: no frames */
	struct stacks_frame *frames; /* of its coroutines, innermost first */
	size_t frame_count;
	char **awaits, **awaited_by; /* names of other tasks, as far as known */
	size_t awaits_count, awaited_by_count;
};

struct stacks_thread {
	pid_t pid, tid;
	pid_t inner_tid; /* in its own pid namespace */
	char name[PYSTACK_NAME_BYTES]; /* from Python, else from the kernel */
	char state; /* as in /proc: R, S, D, T, Z */
	bool python; /* it has a PyThreadState */
	bool gil;
	uint64_t python_state; /* its PyThreadState; 0: none */
	bool missed; /* it changed during every read: no stack */
	/* innermost first */
	struct stacks_frame *frames;
	size_t frame_count;
	struct stacks_task *tasks;
	size_t task_count;
	char *why; /* what it waits for, as a sentence; NULL: not requested, or running */
	size_t reason_bytes; /* of why: the part before the duration and the zone */
	/* the thread that holds the lock it waits for, or that it joins; 0: none or unknown */
	pid_t waits_for;
	uint64_t taken_ns; /* CLOCK_MONOTONIC; unknown for a program that has ended */
	uint64_t age_ns; /* for a program that has ended: time before its end */
	uint64_t held_ns; /* time stopped for its native frames; 0: not stopped */
};

struct stacks {
	pid_t pid;
	char program[64];
	/* of the process; '\0': it has ended, and these are the last sampled stacks */
	char state;
	uint32_t python_version; /* 0: no Python */
	char without_python[256]; /* the reason, if there is none */
	char without_native[256]; /* why there are no native frames, if they were requested */
	char unfinished[256]; /* what is missing because the deadline passed, as a sentence */
	/* threads that wait for each other in a cycle, as a sentence; "": none */
	char deadlock[512];
	struct stacks_thread *threads;
	size_t thread_count;
	bool tasks_cut; /* there are more tasks than listed */
	uint64_t held_ns; /* the longest time a thread was stopped for its native frames */
};

struct stacks_options {
	bool locals, native, why;
	size_t local_bytes; /* of a value; 0: 80 */
};

/* 0, or a negative errno and *err: the process does not exist or may not be read. A process without
   Python has threads without frames. Does not wait for the process, whatever its state, and ends
   after PROCESS_MEMORY_WITHIN_NS with what was found, or at the deadline that the caller set. */
int stacks_take(pid_t pid, const struct stacks_options *options, struct stacks *out,
		struct kymo_error *err);
void stacks_free(struct stacks *stacks);

/* True for names of variables that are likely to contain a secret: their values are not read. */
bool stacks_is_secret(const char *name);

/* Shared by the files stacks*.c. */
void stacks_copy_frame(struct stacks_frame *frame, const struct pystack_frame *from,
		       const struct pymemory *memory, const struct stacks_options *options);
void stacks_free_frames(struct stacks_frame *frames, size_t count);
/* stacks_tasks.c: the tasks of all threads. */
void stacks_add_tasks(struct stacks *stacks, struct pystack *stack,
		      const struct stacks_options *options);
void stacks_free_tasks(struct stacks_thread *thread);
/* stacks_native.c: stack may be NULL. 0, or a negative errno and *err; the other frames are
   kept. */
int stacks_add_native(struct stacks *stacks, struct pystack *stack,
		      const struct stacks_options *options, struct kymo_error *err);
/* stacks_locals.c: fills the locals of the frame. */
void stacks_read_locals(const struct pymemory *memory, const struct pystack_frame *from,
			struct stacks_frame *frame, size_t most);

#endif
