/* The stacks of a process at this moment: every thread, with what Python and the kernel say of
   it. */
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
	char *func; /* qualified; of a native frame its symbol, demangled, or module+offset */
	char *file; /* of a native frame its source, where that is known; else its module */
	int line; /* 0: not known */
	bool native;
	struct stacks_local *locals;
	size_t local_count;
};

/* A task of asyncio that is not running: of its thread's loop. */
struct stacks_task {
	char *name;
	/* the type of the future that it waits for; NULL: none, it is about to run */
	char *waits_for;
	bool begun;
	bool missed; /* it changed all the time: no frames */
	struct stacks_frame *frames; /* of its coroutines, the innermost first */
	size_t frame_count;
	char **awaits, **awaited_by; /* names of other tasks, where that can be known */
	size_t awaits_count, awaited_by_count;
};

struct stacks_thread {
	pid_t pid, tid;
	char name[PYSTACK_NAME_BYTES]; /* Python's, else the kernel's */
	char state; /* as /proc has it: R, S, D, T, Z */
	bool python; /* Python knows it */
	bool gil;
	uint64_t python_state; /* its PyThreadState; 0: none */
	bool missed; /* it changed all the time: no stack */
	struct stacks_frame *frames; /* the innermost first */
	size_t frame_count;
	struct stacks_task *tasks;
	size_t task_count;
	char *why; /* what it waits for, as a sentence; NULL: not asked for, or it runs */
	size_t reason_bytes; /* of why: what comes before since when, and the zone */
	/* thread that holds the lock that it waits for, or that it joins; 0: none, or not known */
	pid_t waits_for;
	uint64_t taken_ns; /* CLOCK_MONOTONIC; of a program that has ended: not known */
	uint64_t age_ns; /* of a program that has ended: how long before its end */
	uint64_t held_ns; /* for its native frames; 0: it was not */
};

struct stacks {
	pid_t pid;
	char program[64];
	/* of the process; '\0': it has ended, and these are the last stacks that were taken */
	char state;
	uint32_t python_version; /* 0: no Python */
	char without_python[256]; /* why, if so */
	char without_native[256]; /* why there are no native frames, if they were asked for */
	char deadlock
		[512]; /* threads that wait for each other in a circle, as a sentence; "": none seen */
	struct stacks_thread *threads;
	size_t thread_count;
	bool tasks_cut; /* there are more tasks than are shown */
	uint64_t held_ns; /* the longest time that a thread was held for its native frames */
};

struct stacks_options {
	bool locals, native, why;
	size_t local_bytes; /* of a value; 0: 80 */
};

/* 0, or a negative errno and *err: there is no such process, or it may not be read. A process
   without Python has threads without frames. Answers at once, whatever state the process is in. */
int stacks_take(pid_t pid, const struct stacks_options *options, struct stacks *out,
		struct kymo_error *err);
void stacks_free(struct stacks *stacks);

/* Names that are likely to hold a secret: their values are not read. */
bool stacks_is_secret(const char *name);

/* Between the files of this name. */
void stacks_copy_frame(struct stacks_frame *frame, const struct pystack_frame *from,
		       const struct pymemory *memory, const struct stacks_options *options);
void stacks_free_frames(struct stacks_frame *frames, size_t count);
/* stacks_tasks.c: the tasks of all threads. */
void stacks_add_tasks(struct stacks *stacks, struct pystack *stack,
		      const struct stacks_options *options);
void stacks_free_tasks(struct stacks_thread *thread);
/* stacks_native.c: stack may be NULL. 0, or a negative errno and *err: all else is there. */
int stacks_add_native(struct stacks *stacks, struct pystack *stack,
		      const struct stacks_options *options, struct kymo_error *err);
/* stacks_locals.c: fills the locals of the frame. */
void stacks_read_locals(const struct pymemory *memory, const struct pystack_frame *from,
			struct stacks_frame *frame, size_t most);

#endif
