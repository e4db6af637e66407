/* Targets: running programs and recordings, each with the data held in memory. */
#ifndef KYMO_SERVE_TARGET_H
#define KYMO_SERVE_TARGET_H

#include <pthread.h>

#include <kymo/atomic.h>

#include "serve/feed.h"
#include "store/store.h"

#define TARGETS_MOST 2000

/* Figures of a target whose zones were not requested. */
struct target_about {
	bool known;
	char *command;
	int32_t rank, ranks;
	int64_t steps, duration_ns;
};

struct children_ask;
struct targets;

struct target {
	struct targets *of;
	char id[20]; /* opaque; constant for a path */
	struct store_entry entry; /* under targets->lock */
	bool gone; /* likewise: no longer exists */
	size_t named; /* its place on the command line, from 1; 0: not named there */
	struct target_about about; /* likewise */
	uint64_t wanted_at_ns; /* atomic; last request for its zones, CLOCK_MONOTONIC */
	int watchers; /* atomic; of its events */
	/* Held during a look. */
	pthread_mutex_t look_lock;
	uint64_t looked_at_ns, look_cost_ns;
	/* Of a packed file, which a child reads: the last failure, and the number
	   of requests that wait. */
	struct kymo_error look_failure;
	uint64_t look_failed_at_ns;
	int look_waiting; /* atomic */
	uint64_t told_at_ns; /* sent to subscribers; used by the thread of events.c */
	/* Held while rows of devices and collectives are read, without feed_lock. */
	pthread_mutex_t devices_lock;
	uint64_t devices_at_ns; /* atomic; 0: never */
	uint64_t devices_cost_ns; /* under devices_lock */
	int devices_reading; /* atomic; a thread of its own reads them */
	/* Under feed_lock: many readers; written by a look. */
	pthread_rwlock_t feed_lock;
	struct feed feed;
	/* The part of it that takes little time, until the whole one is there. Taken before
	   run_lock. */
	pthread_mutex_t first_lock;
	struct buf first;
	/* The document of /api/run, under run_lock. */
	pthread_mutex_t run_lock;
	struct buf run;
	uint64_t run_at_ns, run_cost_ns, run_number;
	bool run_live;
};

struct targets {
	pthread_mutex_t list_lock; /* held while recordings are listed; taken before `lock` */
	uint64_t list_cost_ns; /* under list_lock */
	pthread_mutex_t lock;
	struct target **list; /* never shrinks, so pointers stay valid */
	size_t count;
	char named[16][KYMO_PATH_BYTES]; /* on the command line */
	size_t named_count;
	bool only_named;
	uint64_t listed_at_ns;
	uint64_t number; /* grows when the list changes, apart from figures that always change */
	uint64_t hash;
};

void targets_init(struct targets *targets);
/* Lists recordings, unless that was done less than `least_ns` ago, or is being done. Where it takes
   long, as of a job with a thousand recordings, it is done less often. */
void targets_list(struct targets *targets, uint64_t least_ns);
/* Reads the figures of some targets that have none yet. */
void targets_learn(struct targets *targets);
/* By id, pid, "latest" or NULL for the default; NULL: not found. */
struct target *targets_find(struct targets *targets, const char *name);
/* The members of /api/targets from "targets" on. */
void targets_json(struct targets *targets, struct buf *out);

/* Reads new rows, unless that was done less than least_ns ago. *came (may be NULL): whether it
   did. */
int target_look(struct target *target, uint64_t least_ns, bool *looked, struct kymo_error *err);
/* Reads the operations of devices and the collectives of a recording, if there are new ones: this
   may take seconds. Not `wait`: begins to read them and returns. Returns whether all were read. */
bool target_look_devices(struct target *target, bool wait);
/* Its path, which changes at most once. */
void target_copy_path(const struct target *target, char out[KYMO_PATH_BYTES]);
/* Asks a child about it (children.h) at its current path: a run that ends moves from memory to
   disk. */
int target_ask(struct target *target, struct children_ask *ask, struct kymo_error *err);
/* "running", "hung", "ended", "killed", "lost", "unreadable". */
const char *target_state(const struct target *target);
/* "exit_code":…,"signal":… */
void target_how_json(const struct target *target, struct buf *out);

uint64_t target_clock_ns(void); /* CLOCK_MONOTONIC */

#endif
