/*
 * Zones of a model from rows of SQL, with these columns: pid, tid, depth, start_ns, duration_ns,
 * source, name, file, line, thread, rank, host. Zones that no thread made have a tid below 0: -1 in
 * one lane per queue of a device, -2 collectives of a rank, -3 its critical path.
 */
#ifndef KYMO_VIEWS_TIMELINE_ZONE_ROWS_H
#define KYMO_VIEWS_TIMELINE_ZONE_ROWS_H

#include "views/query/rows.h"
#include "views/timeline/zone_model.h"

struct zone_rows {
	struct zone_model *model;
	uint32_t clock; /* of new lanes; its ticks are ns */
	bool samples; /* the rows are stack samples: their lanes hold nothing else */
	bool by_name; /* equal tids with different names are different lanes: tasks */
	size_t last_lane;
};

struct zone_rows_zone {
	int64_t start_ns, duration_ns;
	uint32_t name;
	uint16_t lane, row;
};

/* 1: *out is a zone. 0: the row is not one, or found no lane, which is counted as hidden. -ENOMEM:
   out of memory. */
int zone_rows_read(struct zone_rows *reader, const struct rows *rows, struct zone_rows_zone *out);

#endif
