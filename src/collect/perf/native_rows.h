/*
 * Rows of native.samples and native.frames. Samples wait here for about a second, until the lines
 * of their places are known and the Python samples around them have been taken.
 */
#ifndef KYMO_COLLECT_PERF_NATIVE_ROWS_H
#define KYMO_COLLECT_PERF_NATIVE_ROWS_H

#include "base/format.h"
#include "collect/perf/native_modules.h"
#include "collect/perf/native_places.h"
#include "collect/recent_stacks.h"

/* A word of the interpreter loop's frame that may point to Python code. */
struct native_words {
	uint32_t first, count; /* in words */
};

struct native_waiting {
	uint64_t ts_ticks, time_ns, weight_ns;
	pid_t pid, tid;
	uint32_t thread_name;
	uint32_t first, count; /* in places_of */
	uint32_t first_words; /* in words_of: one for each frame of the interpreter loop */
	uint32_t evaluators;
	uint32_t flags;
	/* Of a thread that waits: */
	uint32_t activity, waits_for; /* names */
	pid_t holder;
	bool futex; /* its functions tell what kind of lock it is */
};

struct native_node {
	uint32_t parent;
	struct native_label label;
};

struct native_rows {
	struct native_places places;
	struct native_modules modules;
	struct recent_stacks *recent; /* Python stacks; NULL: none */
	struct native_waiting *waiting;
	size_t waiting_count, waiting_room;
	uint32_t *places_of;
	size_t places_count, places_room;
	struct native_words *words_of;
	size_t words_of_count, words_of_room;
	uint64_t *words;
	size_t words_count, words_room;
	struct native_node *nodes; /* by number of the index */
	size_t nodes_room;
	struct intern nodes_index;
	uint32_t nodes_before; /* nodes that were forgotten */
	size_t nodes_most;
	struct {
		uint64_t rows, complete, merged, apart, frames;
	} stats;
};

void native_rows_init(struct native_rows *rows, struct recent_stacks *recent, enum kymo_keep keep);
/* Adds a sample. memory: the copy of the stack. False: out of room, and counted as lost. */
bool native_rows_add(struct native_rows *rows, struct address_space *space,
		     const struct native_walk *walk, const struct frame_memory *memory,
		     const struct native_waiting *sample);
/* The same for a stack that was added before, by its places. */
bool native_rows_add_again(struct native_rows *rows, const uint32_t *places, uint32_t count,
			   const struct native_waiting *sample);
/* The number of a text; 0 for an empty one. */
uint32_t native_rows_word(const char *text);
/* Writes the samples that were taken before a time (CLOCK_MONOTONIC), with lines that are found
   until the deadline. */
void native_rows_write(struct native_rows *rows, uint64_t before_ns, uint64_t deadline_ns);
void native_rows_fini(struct native_rows *rows);

#endif
