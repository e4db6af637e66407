/*
 * All zones of a recording, thread by thread, as nested begins and ends, for exporters and flame
 * graphs. Memory is bounded for any number of zones: they are read in windows of about a million,
 * sorted by DuckDB.
 *
 * Ends come in order and within the enclosing zone, whatever times were recorded: a zone that
 * outlasts its parent is cut at the parent's end. Open zones are included and marked.
 */
#ifndef KYMO_VIEWS_TIMELINE_ZONE_WALK_H
#define KYMO_VIEWS_TIMELINE_ZONE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "tables/tables.h"
#include "views/stacks/name_table.h"
#include "views/term/progress.h"
#include "views/timeline/rank_set.h"

struct zone_walk_thread {
	int32_t pid, tid;
	int32_t rank; /* -1: none */
	int32_t lane; /* from 1: zones of an imported thread that overlap are on several */
	char name[64];
	uint64_t zones;
};

struct zone_walk_zone {
	uint32_t frame; /* of walk.frames */
	int64_t start_ns, end_ns; /* the end as cut */
	int64_t cut_ns; /* by which the recorded end is later */
	int64_t inside_ns; /* time in nested zones; complete at its end */
	int32_t depth; /* as recorded */
	int64_t step;
	bool open; /* at the end of the recording */
	uint64_t tag; /* tag, since_ns: for the visitor */
	int64_t since_ns;
};

struct zone_walk;

/* Each returns 0, or the result that ends the walk. NULL: not called. */
struct zone_walk_visitor {
	/* The zones of a thread follow; the previous thread is complete. */
	int (*thread)(struct zone_walk *walk, const struct zone_walk_thread *thread);
	/* parent: NULL for an outermost zone. */
	int (*begin)(struct zone_walk *walk, struct zone_walk_zone *zone,
		     struct zone_walk_zone *parent);
	int (*end)(struct zone_walk *walk, struct zone_walk_zone *zone,
		   struct zone_walk_zone *parent);
};

struct zone_walk {
	struct tables *tables;
	const struct zone_walk_visitor *visitor;
	void *context; /* the visitor's */
	struct name_table *frames; /* the caller's: outlives the walk */
	struct progress *progress; /* NULL: none */
	/* Sampled stacks are zones too, in threads of their own, from SAMPLED_ZONES_TID on. */
	bool samples;
	const struct rank_set *ranks; /* threads of these; NULL: all */
	struct kymo_error *err;
	const struct zone_walk_thread *at; /* the current thread */
	/* Private: */
	struct zone_walk_thread *threads;
	size_t thread_count, thread_next;
	struct zone_walk_zone *stack;
	size_t depth, room;
	uint64_t zones, zones_all;
};

/* The caller sets the members above `at`. 0, a negative errno, or the visitor's result. */
int zone_walk_run(struct zone_walk *walk);

#endif
