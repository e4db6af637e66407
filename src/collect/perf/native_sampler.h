/*
 * Samples native stacks of a program, its threads and its children, in a thread of its own, and
 * writes rows of native.samples and native.frames into the recording of the calling process. The
 * kernel takes the samples; the program is not stopped.
 */
#ifndef KYMO_COLLECT_PERF_NATIVE_SAMPLER_H
#define KYMO_COLLECT_PERF_NATIVE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/format.h"
#include "collect/recent_stacks.h"

struct native_sampler_stats {
	uint64_t samples; /* rows that were written */
	uint64_t complete; /* that reach the outermost frame */
	uint64_t merged; /* with Python frames */
	uint64_t apart; /* in Python, but not merged */
	uint64_t lost; /* by the kernel, as a ring was full */
	uint64_t damaged; /* records that could not be read */
	uint64_t functions; /* distinct addresses with a name */
	uint64_t cpu_ns; /* of the thread */
};

struct native_sampler {
	struct native_sampler_inside *inside; /* NULL: not open */
};

/* Before the exec of a child process: samples begin with the exec. 0, or a negative errno and
   *err. */
int native_sampler_open_child(struct native_sampler *sampler, pid_t pid, struct kymo_error *err);
/* Of a running process. */
int native_sampler_open_process(struct native_sampler *sampler, pid_t pid, struct kymo_error *err);
/* Whether a descriptor is one of the sampler's. */
bool native_sampler_holds(const struct native_sampler *sampler, int fd);
/* Adds a running child of it. */
void native_sampler_add_process(struct native_sampler *sampler, pid_t pid);
/* Starts the thread, after kymo__enable_at(). recent: where the Python sampler puts its stacks; may
   be NULL. The caller has to block all signals. */
int native_sampler_start(struct native_sampler *sampler, struct recent_stacks *recent,
			 enum kymo_keep keep, struct kymo_error *err);
/* Takes no samples until it is called again; the thread does so at its next look. */
void native_sampler_pause(struct native_sampler *sampler, bool paused);
/* As of its last pause. */
void native_sampler_stats(struct native_sampler *sampler, struct native_sampler_stats *out);
/* Writes what is left, and ends the thread. Does nothing if it is not open. */
void native_sampler_stop(struct native_sampler *sampler, struct native_sampler_stats *last);

#endif
