/*
 * Measures what recording costs while the program runs, and changes settings so that it stays
 * within the budget (governor.h). The cost of the program is that of its dearest process: rows,
 * times the measured cost of one. That of the collector is its CPU time. Settings are changed in
 * the control pages, as `kymo config` does, and each change is a row of kymo.config.
 */
#ifndef KYMO_COLLECT_RUN_GOVERNOR_RUN_H
#define KYMO_COLLECT_RUN_GOVERNOR_RUN_H

#include "collect/move/archive.h"
#include "collect/perf/native_sampler.h"
#include "collect/run/governor.h"
#include "collect/sample/sampler.h"

/* What one process had cost at the last look, in ns. */
struct governed {
	char process[ARCHIVE_NAME_BYTES];
	uint64_t rung_ns[GOVERNOR_RUNGS];
	uint64_t python_ns, rest_ns;
};

struct governor_run {
	bool on;
	struct governor governor;
	struct governed *processes;
	size_t process_count, process_room;
	uint64_t looked_ns, next_ns;
	uint64_t sampler_ns, native_ns, collector_ns; /* CPU time at the last look */
	/* values before the first change */
	uint64_t sample_period_ns;
	uint32_t torch_ops, torch_every;
};

struct governor_samplers {
	struct native_sampler *native;
	uint64_t native_ns, sampler_ns, all_ns; /* CPU time: of all threads */
};

/* budget: a share of the time; 0: none, and nothing happens. */
void governor_run_init(struct governor_run *run, double budget);
/* To be called every second. */
void governor_run_look(struct governor_run *run, struct archive *archive,
		       const struct governor_samplers *samplers, uint64_t now_ns);
void governor_run_fini(struct governor_run *run);

#endif
