/*
 * Pieces of a track as columns of bytes: gap (from the end of the piece before), duration and name;
 * where pieces are merged also n and busy time. A column is written as planes, all lowest bytes
 * first, then all second ones, and so on, which compresses well. Times are in quanta.
 */
#ifndef KYMO_VIEWS_TIMELINE_ZONE_PLANES_H
#define KYMO_VIEWS_TIMELINE_ZONE_PLANES_H

#include "views/timeline/zone_pieces.h"

struct zone_planes {
	uint16_t lane, row;
	size_t count;
	unsigned gap_bytes, duration_bytes, name_bytes; /* per number; n has 4, busy as duration */
	bool merged;
};

/* Appends the columns of pieces that begin at `base_ns` or later. Fills in *about but lane and row;
   about->merged selects n and busy. `values` has room for one number per piece. */
void zone_planes_add(struct buf *out, const struct zone_pieces *pieces, int64_t base_ns,
		     uint64_t quantum_ns, uint64_t *values, struct zone_planes *about);

#endif
