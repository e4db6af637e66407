/* What `kymo run` and `kymo attach` share: the process that watches from outside. */
#ifndef KYMO_COLLECT_RUN_COLLECTOR_H
#define KYMO_COLLECT_RUN_COLLECTOR_H

#include "collect/move/archive.h"
#include "collect/run/collect.h"
#include "collect/run/family.h"
#include "collect/move/run_dirs.h"
#include "collect/host/host.h"
#include "collect/run/launch.h"
#include "collect/python/sampler.h"
#include "collect/run/watch.h"

/* In the order in which it is made. */
struct collector {
	struct run_dirs
		halves; /* of a recording that was joined: the live half alone, no descriptors */
	struct launch_signals signals;
	struct watch watch;
	struct family family;
	struct archive archive;
	struct host host;
	struct sampler sampler;
	enum kymo_keep keep;
	uint64_t slow_ns; /* a zone or step open for longer is sampled too; 0: none is */
	uint64_t started_ns;
	uint64_t until_ns; /* it ends then, if not before; 0: never by itself */
	uint64_t target_starttime;
	bool moves; /* segments go to the disk: archive and halves are in use */
	uint64_t rounds; /* of metrics */
	bool records; /* our own rows can be written */
};

/* Begins to record as a collector in the live half. Where it fails that is said, and the rest goes
   on. */
void collector_record(struct collector *collector);
/* Until the program has ended, or we are told to, or the time is over. */
void collector_supervise(struct collector *collector);
/* The last rows; usage: of a program that is our child and a zombie, else NULL. */
void collector_last_rows(struct collector *collector, const struct rusage *usage);
/* Moves what is left, ends the recording, and says where it is. wstatus: NULL where nobody told. */
void collector_settle(struct collector *collector, const int *wstatus,
		      struct collect_result *result);

#endif
