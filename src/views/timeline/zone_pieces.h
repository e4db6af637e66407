/*
 * Level of detail: the zones of a track as pieces no shorter than a picture can show. Zones that
 * are shorter than a bucket of 2^level ns and begin in the same bucket become one piece. The cost
 * grows with the number of pieces, not of zones.
 */
#ifndef KYMO_VIEWS_TIMELINE_ZONE_PIECES_H
#define KYMO_VIEWS_TIMELINE_ZONE_PIECES_H

#include "views/timeline/zone_model.h"

struct zone_piece {
	int64_t start_ns, end_ns, busy_ns;
	uint32_t name; /* of the longest zone */
	uint32_t n; /* zones */
};

struct zone_pieces {
	struct zone_piece *list;
	size_t count, room;
	bool merged; /* one of them has more than one zone */
	bool failed; /* out of memory */
};

/* Appends the pieces that reach into [from_ns, to_ns). */
void zone_pieces_add_time(const struct zone_model *model, const struct zone_model_track *track,
			  int64_t from_ns, int64_t to_ns, unsigned level, struct zone_pieces *out);
/* Appends the pieces of zones [first, end). */
void zone_pieces_add_zones(const struct zone_model *model, const struct zone_model_track *track,
			   uint32_t first, uint32_t end, unsigned level, struct zone_pieces *out);
/* One zone as a piece. */
struct zone_piece zone_pieces_zone(const struct zone_model *model,
				   const struct zone_model_track *track, uint32_t at);
/* The first zone of the track that ends after t, or the track's count. */
uint32_t zone_pieces_first(const struct zone_model *model, const struct zone_model_track *track,
			   int64_t t_ns);
/* Whether a zone of the track contains t. For times in ascending order: *at moves forward to that
   zone, or to the first one after t. */
bool zone_pieces_contain(const struct zone_model *model, const struct zone_model_track *track,
			 int64_t t_ns, uint32_t *at);

#endif
