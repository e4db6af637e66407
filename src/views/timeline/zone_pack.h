/*
 * The zones of a model within a budget of bytes, for a page: the planes of all tracks one after
 * another, as raw deflate.
 */
#ifndef KYMO_VIEWS_TIMELINE_ZONE_PACK_H
#define KYMO_VIEWS_TIMELINE_ZONE_PACK_H

#include "base/error.h"
#include "views/timeline/zone_planes.h"

struct zone_pack_span {
	int64_t from_ns, to_ns;
};

struct zone_pack {
	unsigned char *data; /* raw deflate */
	size_t bytes;
	struct zone_planes *tracks; /* by lane and row */
	size_t track_count;
	uint64_t quantum_ns;
	/* 0: all zones are present; otherwise shorter ones outside the kept spans are merged */
	int64_t merged_ns;
	uint64_t shown; /* pieces */
};

/* Rounds times to 1, 4, 16, 64 or 256 ns, the first that fits into `budget` compressed bytes. If
   none does, all zones of the spans `keep` (in order of start, not overlapping) are written and
   others are merged; then all are merged. */
int zone_pack_make(const struct zone_model *model, const struct zone_pack_span *keep,
		   size_t keep_count, size_t budget, struct zone_pack *out, struct kymo_error *err);
void zone_pack_fini(struct zone_pack *pack);

#endif
