/* The tree of a flame graph over all zones: who called what, and for how long in all. */
#ifndef KYMO_VIEWS_TIMELINE_ZONEFLAME_H
#define KYMO_VIEWS_TIMELINE_ZONEFLAME_H

#include "views/timeline/zoneset.h"

#define ZONEFLAME_ROOT UINT32_MAX

struct zoneflame_node {
	uint32_t parent; /* comes before its children; ZONEFLAME_ROOT: none */
	int64_t name; /* of the set; -1 - lane for a lane */
	double total_ns;
};

struct zoneflame {
	struct zoneflame_node *nodes;
	size_t count, room;
	uint32_t *slots; /* open hash: index + 1 */
	size_t slot_count;
};

/* 0, or -ENOMEM. */
int zoneflame_make(const struct zoneset *set, struct zoneflame *out);
void zoneflame_fini(struct zoneflame *flame);

#endif
