/*
 * All zones of a recording, thread by thread, as begins and ends that nest: what exporters and
 * flame graphs need. Memory is bounded, however many zones there are: they are asked for in windows
 * of about a million, sorted by DuckDB.
 *
 * Whatever times a recording holds, ends come in order and inside of what encloses them: a zone
 * that outlasts its parent is cut there. Zones that were open at the end come too, marked as such.
 */
#ifndef KYMO_VIEWS_TIMELINE_ZONE_WALK_H
#define KYMO_VIEWS_TIMELINE_ZONE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "tables/tables.h"
#include "views/timeline/name_table.h"
#include "views/term/progress.h"

struct zone_walk_thread {
	int32_t pid, tid;
	int32_t rank; /* -1: none */
	char name[64];
	uint64_t zones;
};

struct zone_walk_zone {
	uint32_t frame; /* of walk.frames */
	int64_t start_ns, end_ns; /* the end as cut */
	int64_t inside_ns; /* of it, time in zones inside; complete at its end */
	int32_t depth; /* as recorded */
	int64_t step;
	bool open; /* had not ended */
	uint64_t tag; /* the visitor's own, both */
	int64_t since_ns;
};

struct zone_walk;

/* Each returns 0, or what the walk is to end with. NULL: not wanted. */
struct zone_walk_visitor {
	/* A thread's zones begin; the one before is done. */
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
	struct name_table *frames; /* the caller's: names stay when the walk is over */
	struct progress *progress; /* NULL: none */
	struct kymo_error *err;
	const struct zone_walk_thread *at; /* the thread that is visited */
	/* The walk's own: */
	struct zone_walk_thread *threads;
	size_t thread_count, thread_next;
	struct zone_walk_zone *stack;
	size_t depth, room;
	uint64_t zones, zones_all;
};

/* The caller sets what is above `at`. 0 or a negative errno, or what the visitor returned. */
int zone_walk_run(struct zone_walk *walk);

#endif
