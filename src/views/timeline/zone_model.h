/*
 * The timeline of a recording in memory, for HTML reports and for the server: lanes (threads,
 * tasks, device queues), the rows of each lane, and in each row zones in order of their start that
 * do not overlap. Zones are appended as they arrive. zone_pieces.h answers any interval at any
 * resolution.
 *
 * Times are stored in ticks of the recorder's clock and converted to ns on reading, since the rate
 * of a running program's clock is measured better over time. Not thread-safe: the owner locks it.
 */
#ifndef KYMO_VIEWS_TIMELINE_ZONE_MODEL_H
#define KYMO_VIEWS_TIMELINE_ZONE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"
#include "views/stacks/name_table.h"
#include "views/timeline/rank_set.h"

#define ZONE_MODEL_ROWS 256 /* per lane */
#define ZONE_MODEL_LANES 65535
#define ZONE_MODEL_LANES_SHOWN 256 /* the most important ones */
#define ZONE_MODEL_LEVELS 6 /* of the tree of longest zones: blocks of 16^1 … 16^6 zones */

/* From ZONE_MODEL_QUEUE on, zones were not made by a thread: operations of a device's queue,
   collectives of a rank, the critical path of a rank, stack samples of a program that marked
   nothing (sampled_zones.h). */
enum zone_model_kind {
	ZONE_MODEL_THREAD,
	ZONE_MODEL_TASK,
	ZONE_MODEL_QUEUE,
	ZONE_MODEL_COLLECTIVES,
	ZONE_MODEL_CRITICAL,
	ZONE_MODEL_SAMPLES,
	ZONE_MODEL_KINDS
};

/* The zones of one row of a lane. */
struct zone_model_track {
	uint16_t lane, row;
	uint32_t count, room;
	uint64_t *start, *duration; /* ticks */
	uint32_t *name;
	uint64_t *busy; /* ticks before each block of 16 */
	uint32_t *longest[ZONE_MODEL_LEVELS]; /* zone of each block */
};

struct zone_model_lane {
	char name[64];
	char host[64]; /* "": not known */
	int32_t pid, tid, rank; /* rank -1: none */
	enum zone_model_kind kind;
	uint32_t clock; /* index */
	uint64_t count;
	uint32_t rows;
	uint32_t *tracks; /* of each row: index + 1; 0: none */
};

struct zone_model {
	struct zone_model_track *tracks;
	size_t track_count, track_room;
	struct zone_model_lane *lanes;
	size_t lane_count, lane_room;
	struct name_table names;
	struct store_clock *clocks;
	size_t clock_count, clock_room;
	/* A zone that begins at most this long before the end of its predecessor begins at that
	   end; 0: such zones take another row. Times in ns overlap by rounding. */
	uint64_t rounding_ticks;
	uint64_t count; /* zones in the tracks */
	uint64_t hidden; /* zones without a lane or row */
	uint64_t sampled; /* zones that were made of stack samples, hidden ones too */
	uint64_t forgotten; /* zones removed by zone_model_forget() */
};

/* Each returns an index, or -ENOMEM; -ENOSPC: too many lanes. */
int64_t zone_model_clock(struct zone_model *model, const struct store_clock *clock);
int64_t zone_model_clock_ns(struct zone_model *model); /* a clock whose ticks are ns */
int64_t zone_model_lane(struct zone_model *model, const struct zone_model_lane *lane);

/* Adds a zone to a lane, in `row` or the first row below where it does not overlap. 0 or -ENOMEM.
   A zone for which there is no row is counted as hidden. */
int zone_model_add(struct zone_model *model, uint32_t lane, uint32_t row, uint64_t start_ticks,
		   uint64_t duration_ticks, uint32_t name);
/* The track of a row, or NULL. */
const struct zone_model_track *zone_model_track(const struct zone_model *model, size_t lane,
						uint32_t row);
int64_t zone_model_end_ns(const struct zone_model *model); /* of the last zone */
/* The lanes of these ranks (NULL: all) in the order of a timeline: by rank, those without one last;
   the main thread of a process, other threads by number of zones, collectives, queues. At most
   ZONE_MODEL_LANES_SHOWN indices, on the heap; NULL: out of memory. *out_hidden (may be NULL): how
   many lanes are left out of them. The list goes on after these with all other lanes. */
uint32_t *zone_model_order(const struct zone_model *model, const struct rank_set *ranks,
			   size_t *out_count, size_t *out_hidden);
/* Whether its zones were made by a thread. */
static inline bool zone_model_is_thread(const struct zone_model_lane *lane)
{
	return lane->kind < ZONE_MODEL_QUEUE;
}
/* Members of a lane's JSON object: "rank", "host", "kind", "note", "name". */
void zone_model_lane_json(const struct zone_model_lane *lane, struct buf *out);

/* Removes the older half of each track, to save memory. */
void zone_model_forget(struct zone_model *model);
/* Removes all zones that were not made by threads; the lanes stay. */
void zone_model_clear_devices(struct zone_model *model);
void zone_model_fini(struct zone_model *model);

#endif
