/*
 * The zones of a recording for a timeline, in memory: lanes (threads, tasks, device queues), in
 * each of them rows, in each row zones in order of their start that do not overlap. Zones are
 * appended as they arrive, and any stretch of time is answered for any width of a picture: what is
 * shorter than a pixel is merged (zoneindex_pieces).
 *
 * Times are kept in ticks of the recorder's clock and told in ns, since a running program's clock
 * is measured better and better. Not thread-safe: whoever owns one locks it.
 */
#ifndef KYMO_SERVE_ZONEINDEX_H
#define KYMO_SERVE_ZONEINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/store.h"
#include "views/timeline/zonenames.h"

#define ZONEINDEX_ROWS 256 /* of a lane */
#define ZONEINDEX_LANES 65535
#define ZONEINDEX_NAMES 262144 /* the last stands for all further ones */
#define ZONEINDEX_LEVELS 6 /* of the tree of longest ones: blocks of 16^1 … 16^6 zones */

enum zoneindex_kind { ZONEINDEX_THREAD, ZONEINDEX_TASK, ZONEINDEX_QUEUE };

/* Zones of one lane and row. */
struct zoneindex_track {
	uint16_t lane, row;
	uint32_t count, room;
	uint64_t *start, *duration; /* ticks */
	uint32_t *name;
	uint64_t *busy; /* ticks before each block of 16 */
	uint32_t *longest[ZONEINDEX_LEVELS]; /* zone of each block */
};

struct zoneindex_lane {
	char name[64];
	int32_t pid, tid, rank; /* rank -1: none */
	enum zoneindex_kind kind;
	uint32_t clock; /* index */
	uint32_t rows;
	uint64_t count;
	uint32_t tracks[ZONEINDEX_ROWS]; /* index + 1; 0: none */
};

struct zoneindex {
	struct zoneindex_track *tracks;
	size_t track_count, track_room;
	struct zoneindex_lane *lanes;
	size_t lane_count, lane_room;
	struct zonenames names;
	struct store_clock *clocks;
	size_t clock_count, clock_room;
	uint64_t count; /* zones that are here */
	uint64_t hidden; /* that found no place */
	uint64_t forgotten; /* that were here, and went to make room */
};

/* Each gives an index, or -ENOMEM; -ENOSPC where there are too many lanes. */
int64_t zoneindex_name(struct zoneindex *index, const struct zonenames_key *key);
int64_t zoneindex_clock(struct zoneindex *index, const struct store_clock *clock);
int64_t zoneindex_lane(struct zoneindex *index, const struct zoneindex_lane *lane);

/* A zone of a lane, at best in that row. 0 or -ENOMEM. What fits nowhere is counted. */
int zoneindex_add(struct zoneindex *index, uint32_t lane, uint32_t row, uint64_t start_ticks,
		  uint64_t duration_ticks, uint32_t name);
int64_t zoneindex_end_ns(const struct zoneindex *index); /* when the last one ends */
/* Makes room: the older half of each track goes. */
void zoneindex_forget(struct zoneindex *index);
/* All zones of lanes of that kind go; the lanes stay. */
void zoneindex_clear(struct zoneindex *index, enum zoneindex_kind kind);
void zoneindex_fini(struct zoneindex *index);

/* One zone (n is 1), or several that lie in one bucket of 2^level ns and are shorter than it. */
struct zoneindex_piece {
	int64_t start_ns, end_ns, busy_ns;
	uint32_t name; /* of the longest */
	uint32_t n;
};

struct zoneindex_pieces {
	struct zoneindex_piece *list;
	size_t count, room;
	bool merged; /* one of them stands for several */
	bool failed; /* out of memory */
};

/* Pieces of a track that reach into [from_ns, to_ns); appended to what *out holds. */
void zoneindex_pieces(const struct zoneindex *index, const struct zoneindex_track *track,
		      int64_t from_ns, int64_t to_ns, unsigned level, struct zoneindex_pieces *out);
/* One zone as it is. */
struct zoneindex_piece zoneindex_zone(const struct zoneindex *index,
				      const struct zoneindex_track *track, uint32_t at);
/* The first zone of the track that ends after t; count where there is none. */
uint32_t zoneindex_first(const struct zoneindex *index, const struct zoneindex_track *track,
			 int64_t t_ns);

#endif
