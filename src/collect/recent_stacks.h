/*
 * The Python stacks of the last seconds, which the Python sampler writes and the native sampler
 * reads in another thread, to merge both kinds of frames. Samples in a row with the same stack are
 * one span. Between two of them the thread most likely had that stack, too, but a loop that calls
 * the same function from two callers may have been in either: a function that was seen with two
 * chains of callers, up to the next call from C, is ambiguous.
 */
#ifndef KYMO_COLLECT_RECENT_STACKS_H
#define KYMO_COLLECT_RECENT_STACKS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct recent_frame {
	uint32_t name, line; /* name: of this process's names */
	bool entry; /* called from C: a native frame of the interpreter loop begins here */
	uint64_t frame; /* address of the interpreter's frame */
	uint64_t code, code_end; /* addresses of its code object */
	uint64_t instruction; /* address of the one that it executes */
};

struct recent_stacks;

/* NULL: out of memory. */
struct recent_stacks *recent_stacks_create(void);
void recent_stacks_destroy(struct recent_stacks *recent);
/* Adds the stack of a thread at a time (CLOCK_MONOTONIC); key: equal for equal stacks. frames:
   innermost first, are copied if the stack is not the one before. */
void recent_stacks_add(struct recent_stacks *recent, pid_t tid, uint64_t at_ns, uint64_t key,
		       const struct recent_frame *frames, size_t count);
/* Whether the thread had a Python stack in the last seconds. */
bool recent_stacks_knows(struct recent_stacks *recent, pid_t tid, uint64_t now_ns);
/*
 * The stack that the thread had in a sample before and in the next one after the time. Returns the
 * number of its frames, at most `most` of which are copied; 0: the two differ, it is ambiguous, or
 * the time is outside of the kept samples.
 */
size_t recent_stacks_at(struct recent_stacks *recent, pid_t tid, uint64_t at_ns,
			struct recent_frame *out, size_t most);

#endif
