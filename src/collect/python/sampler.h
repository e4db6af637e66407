/*
 * Takes the Python stacks of processes over time, in a thread of its own, and writes them as rows
 * of python.samples and python.frames into the recording of the calling process (kymo__enable_at()
 * comes first). Descendants of a watched process are found and watched too. The processes do
 * nothing for it and are never stopped.
 */
#ifndef KYMO_COLLECT_PYTHON_SAMPLER_H
#define KYMO_COLLECT_PYTHON_SAMPLER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/format.h"

#define SAMPLER_PERIOD_NS 100000000ull /* the default */
#define SAMPLER_SHORTEST_NS 500000ull

struct sampler_options {
	uint64_t
		/* 0: as the control page of this process says, now and when `kymo config` changes
		   it */
		period_ns;
	uint64_t slow_ns; /* a zone or step that is open for longer is an event; 0: none is */
	const char *
		live_dir; /* of the recording: control pages and open zones are there; NULL: none */
	enum kymo_keep keep; /* of the calling process's recording */
};

struct sampler_stats {
	uint64_t samples; /* of processes */
	uint64_t rows; /* stacks of threads that were written */
	uint64_t missed; /* stacks that were never the same for long enough */
	uint64_t cpu_ns; /* of the sampler itself */
	uint64_t processes; /* in which Python was found */
};

struct sampler {
	struct sampler_inside *inside; /* NULL: not started */
};

/* 0, or a negative errno and *err. All signals must be blocked for the thread that is made: the
   caller sees to it. */
int sampler_start(struct sampler *sampler, const struct sampler_options *options,
		  struct kymo_error *err);
/* From now on that process too; once more does nothing. One that is no Python (yet) is looked at
   again. */
void sampler_watch(struct sampler *sampler, pid_t pid);
/* As of the last time that it paused. */
void sampler_stats(struct sampler *sampler, struct sampler_stats *out);
/* Ends the thread; safe when not started. last: what it has done in all; NULL: nobody asks. */
void sampler_stop(struct sampler *sampler, struct sampler_stats *last);

#endif
