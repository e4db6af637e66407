/*
 * Zones for a page: for each track the columns gap (to the end of the zone before), duration and
 * name, as byte planes, least significant first; where zones were merged, n (4 bytes) and busy
 * time, too. All tracks one after another, raw deflate. Times are in quanta.
 */
#ifndef KYMO_VIEWS_TIMELINE_ZONEPACK_H
#define KYMO_VIEWS_TIMELINE_ZONEPACK_H

#include "base/error.h"
#include "views/timeline/zoneset.h"

struct zonepack_track {
	uint16_t lane, row;
	size_t count;
	unsigned gap_bytes, duration_bytes, name_bytes;
};

struct zonepack_span {
	int64_t from_ns, to_ns;
};

struct zonepack {
	unsigned char *data; /* raw deflate */
	size_t bytes;
	struct zonepack_track *tracks;
	size_t track_count;
	uint64_t quantum_ns;
	/* 0: all zones are there; else shorter ones outside of the kept spans were merged */
	int64_t merged_ns;
	uint64_t shown; /* entries */
};

/* Within a budget of compressed bytes: times rounded to 1, 4, 16, 64, 256 ns, whatever fits first;
   else whole detail in `keep` (in order of start, not overlapping) and merged elsewhere. */
int zonepack_make(const struct zoneset *set, const struct zonepack_span *keep, size_t keep_count,
		  size_t budget, struct zonepack *out, struct kymo_error *err);
void zonepack_fini(struct zonepack *pack);

#endif
