/*
 * Samples the Python stacks of processes in a thread of its own, and writes rows of python.samples
 * and python.frames into the recording of the calling process (call kymo__enable_at() first).
 * Descendants of a sampled process are found and sampled, too. The processes are never stopped.
 */
#ifndef KYMO_COLLECT_SAMPLE_SAMPLER_H
#define KYMO_COLLECT_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/format.h"
#include "collect/recent_stacks.h"

#define SAMPLER_PERIOD_NS 100000000ull /* the default */
#define SAMPLER_SHORTEST_NS 500000ull

struct sampler_options {
	/* 0: the period in the control page of this process, which `kymo config` may change */
	uint64_t period_ns;
	/* Choose the period (collect/sample/sample_pace.h) where none is set. */
	bool adaptive;
	uint64_t slow_ns; /* sample when a zone or step is open for longer; 0: never */
	/* the live directory, with control pages and open zones; NULL: none */
	const char *live_dir;
	enum kymo_keep keep; /* of the calling process's recording */
	struct recent_stacks *recent; /* stacks are put here, too; may be NULL */
};

struct sampler_stats {
	uint64_t samples; /* of processes */
	uint64_t rows; /* written stacks of threads */
	uint64_t missed; /* stacks that changed during every read */
	uint64_t cpu_ns; /* of the sampler itself */
	uint64_t processes; /* with Python */
};

struct sampler {
	struct sampler_inside *inside; /* NULL: not started */
};

/* 0, or a negative errno and *err. The caller has to block all signals, for the new thread. */
int sampler_start(struct sampler *sampler, const struct sampler_options *options,
		  struct kymo_error *err);
/* Adds a process; a second call does nothing. A process without Python is checked again later. */
void sampler_watch(struct sampler *sampler, pid_t pid);
/* As of at most 100 ms ago. */
void sampler_stats(struct sampler *sampler, struct sampler_stats *out);
/* Ends the thread; does nothing if it was not started. last: the final statistics, may be NULL. */
void sampler_stop(struct sampler *sampler, struct sampler_stats *last);

#endif
