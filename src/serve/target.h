/* What can be looked at: running programs and recordings, each with what is kept of it in
   memory. */
#ifndef KYMO_SERVE_TARGET_H
#define KYMO_SERVE_TARGET_H

#include <pthread.h>
#include <stdatomic.h>

#include "serve/feed.h"
#include "store/store.h"
#include "tables/tables.h"

#define TARGETS_MOST 2000

/* Of one whose zones nobody has asked for: what a look without them tells. */
struct target_about {
	bool known;
	char *command;
	int32_t rank, ranks;
	int64_t steps, duration_ns;
};

struct targets;

struct target {
	struct targets *of;
	char id[20]; /* opaque; the same as long as the path is */
	struct store_entry entry; /* under targets->lock */
	bool gone; /* likewise: no longer there */
	size_t named; /* on the command line: its place there, from 1; 0: it was not */
	struct target_about about; /* likewise */
	_Atomic uint64_t wanted_at_ns; /* somebody asked for its zones, by CLOCK_MONOTONIC */
	_Atomic int watchers; /* of its tail */
	/* Who looks: one at a time. */
	pthread_mutex_t look_lock;
	uint64_t looked_at_ns, look_cost_ns;
	uint64_t told_at_ns; /* to those who watch; by the thread that tells */
	/* Under feed_lock: read by many, written by who looks. */
	pthread_rwlock_t feed_lock;
	struct feed feed;
	/* The document of /api/run, under run_lock. */
	pthread_mutex_t run_lock;
	struct buf run;
	uint64_t run_at_ns, run_cost_ns, run_number;
	bool run_live;
};

struct targets {
	pthread_mutex_t lock;
	struct target **list; /* never shrinks: pointers stay good */
	size_t count;
	char named[16][KYMO_PATH_BYTES]; /* of the command line */
	size_t named_count;
	bool only_named;
	uint64_t listed_at_ns;
	uint64_t number; /* grows when the list has changed in what does not always change */
	uint64_t hash;
};

void targets_init(struct targets *targets);
/* Looks for recordings, unless that was less than `least_ns` ago. */
void targets_list(struct targets *targets, uint64_t least_ns);
/* Looks at some that nothing is known of yet. */
void targets_learn(struct targets *targets);
/* By id, pid, "latest" or NULL; NULL: there is none. */
struct target *targets_find(struct targets *targets, const char *name);
/* As /api/targets tells of them, from "targets": on. */
void targets_json(struct targets *targets, struct buf *out);

/* Takes what is new, unless it was looked at less than least_ns ago. *came (NULL: not asked):
   whether it did look. */
int target_look(struct target *target, uint64_t least_ns, bool *looked, struct kymo_error *err);
/* Its tables, wherever it is by now: a run that ends leaves memory for the disk. */
int target_open_tables(struct target *target, const struct tables_options *options,
		       struct tables **out, struct kymo_error *err);
/* "running", "hung", "ended", "killed", "lost", "unreadable". */
const char *target_state(const struct target *target);
/* "exit_code":…,"signal":… */
void target_how_json(const struct target *target, struct buf *out);

uint64_t target_clock_ns(void); /* CLOCK_MONOTONIC */

#endif
