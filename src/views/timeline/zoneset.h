/*
 * All zones of a recording in memory, laid out as a timeline shows them: lanes (threads and device
 * queues), in each of them rows, in each row zones that do not overlap, in order of their start.
 */
#ifndef KYMO_VIEWS_TIMELINE_ZONESET_H
#define KYMO_VIEWS_TIMELINE_ZONESET_H

#include <stdint.h>

#include "tables/tables.h"
#include "views/timeline/zonenames.h"

#define ZONESET_LANES 256 /* shown; of more, those with most zones */
#define ZONESET_ROWS 256 /* of a lane */
#define ZONESET_NAMES 65536 /* the last stands for all further ones */

struct zoneset_zone {
	int64_t start_ns, duration_ns;
	uint32_t name;
	uint16_t lane, row;
};

struct zoneset_lane {
	char name[64];
	int32_t pid, tid, rank; /* rank -1: none */
	bool queue; /* of a device */
	uint32_t rows;
	uint64_t count;
};

/* Zones [first, first + count) of one lane and row. */
struct zoneset_track {
	uint16_t lane, row;
	size_t first, count;
};

struct zoneset {
	struct zoneset_zone *zones; /* by lane, row, start */
	size_t count, room;
	struct zoneset_lane *lanes;
	size_t lane_count, lane_room;
	struct zonenames names;
	struct zoneset_track *tracks;
	size_t track_count;
	uint64_t hidden; /* zones of lanes or rows that are not shown */
	int64_t end_ns;
};

int zoneset_gather(struct tables *tables, struct zoneset *out, struct kymo_error *err);
void zoneset_fini(struct zoneset *set);

#endif
