/* The collector, which `kymo run` and `kymo attach` share: the process that records from
   outside. */
#ifndef KYMO_COLLECT_RUN_COLLECTOR_H
#define KYMO_COLLECT_RUN_COLLECTOR_H

#include "collect/move/archive.h"
#include "collect/move/mirror.h"
#include "collect/collect.h"
#include "collect/host/family.h"
#include "collect/move/run_dirs.h"
#include "collect/host/host.h"
#include "collect/run/autopsy.h"
#include "collect/run/governor_run.h"
#include "collect/run/launch.h"
#include "collect/perf/native_sampler.h"
#include "collect/sample/sampler.h"
#include "collect/run/watch.h"

/* In the order of initialisation. */
struct collector {
	/* of a joined recording: only the path of the live directory, no descriptors */
	struct run_dirs dirs;
	struct launch_signals signals;
	struct watch watch;
	struct family family;
	struct archive archive;
	struct mirror mirror;
	struct host host;
	struct autopsy autopsy;
	struct recent_stacks *recent; /* of the samplers; NULL: not shared */
	struct sampler sampler;
	struct native_sampler native;
	struct governor_run governor;
	bool no_native; /* not wanted */
	struct kymo_error native_error; /* why there are no native stacks */
	uint64_t sampled; /* stacks, after the sampler has ended */
	uint64_t sampled_native;
	enum kymo_keep keep;
	uint64_t slow_ns; /* sample when a zone or step is open for longer; 0: never */
	uint64_t started_ns;
	uint64_t until_ns; /* end at this time; 0: no limit */
	uint64_t target_starttime;
	bool moves; /* segments are moved to the disk: archive and dirs are in use */
	uint64_t rounds; /* of sampled metrics */
	uint64_t memory_unchanged; /* looks in a row without a change */
	bool records; /* the collector's own rows can be written */
};

/* Starts the collector's own recording in the live directory. A failure is reported, and
   supervision continues without it. */
void collector_record(struct collector *collector);
/* Reports that the live directory is not in its usual place. */
void collector_say_fallback(const struct collector *collector);
/* Returns when the program has ended, a signal requests the end or the time is over. */
void collector_supervise(struct collector *collector);
/* Writes the last rows. usage: of the program if it is our child and a zombie, else NULL. */
void collector_last_rows(struct collector *collector, const struct rusage *usage);
/* Moves the remaining data, ends the recording and fills *result. wstatus: NULL if unknown. */
void collector_settle(struct collector *collector, const int *wstatus,
		      struct collect_result *result);

#endif
