#include "views/timeline/zoneflame.h"

#include <errno.h>
#include <stdlib.h>

static size_t zoneflame_slot_of(const struct zoneflame *flame, uint32_t parent, int64_t name)
{
	uint64_t hash = ((uint64_t)parent << 32 ^ (uint64_t)name) * 0x9e3779b97f4a7c15u;

	return (hash >> 20) & (flame->slot_count - 1);
}

static int zoneflame_grow(struct zoneflame *flame)
{
	size_t more = flame->room ? flame->room * 2 : 1024;
	struct zoneflame_node *nodes = realloc(flame->nodes, more * sizeof(*nodes));
	uint32_t *slots = calloc(4 * more, sizeof(*slots));

	if (nodes)
		flame->nodes = nodes;
	if (!nodes || !slots) {
		free(slots);
		return -ENOMEM;
	}
	free(flame->slots);
	flame->slots = slots;
	flame->room = more;
	flame->slot_count = 4 * more;
	for (size_t i = 0; i < flame->count; i++) {
		size_t slot = zoneflame_slot_of(flame, nodes[i].parent, nodes[i].name);

		while (slots[slot])
			slot = (slot + 1) & (flame->slot_count - 1);
		slots[slot] = (uint32_t)i + 1;
	}
	return 0;
}

/* The node's index, or -ENOMEM. */
static int64_t child(struct zoneflame *flame, uint32_t parent, int64_t name)
{
	size_t slot;

	if (flame->count == flame->room && zoneflame_grow(flame))
		return -ENOMEM;
	slot = zoneflame_slot_of(flame, parent, name);
	for (; flame->slots[slot]; slot = (slot + 1) & (flame->slot_count - 1)) {
		const struct zoneflame_node *node = &flame->nodes[flame->slots[slot] - 1];

		if (node->parent == parent && node->name == name)
			return flame->slots[slot] - 1;
	}
	flame->nodes[flame->count] = (struct zoneflame_node){ .parent = parent, .name = name };
	flame->slots[slot] = (uint32_t)flame->count + 1;
	return (int64_t)flame->count++;
}

static int64_t zoneflame_end_of(const struct zoneset_zone *zone)
{
	return zone->start_ns + zone->duration_ns;
}

/* `above` is the nearest track of the lane over this one, NULL for the first; node_of says where
   each zone went. Clocks round: a child may begin a moment before its parent, so its middle
   decides. */
static int zoneflame_add_track(const struct zoneset *set, const struct zoneset_track *track,
			       const struct zoneset_track *above, uint32_t lane_node,
			       uint32_t *node_of, struct zoneflame *out)
{
	size_t at = above ? above->first : 0, last = above ? above->first + above->count : 0;

	for (size_t i = track->first; i < track->first + track->count; i++) {
		const struct zoneset_zone *zone = &set->zones[i];
		int64_t middle = zone->start_ns + zone->duration_ns / 2, node;
		uint32_t parent = lane_node;

		while (at < last && zoneflame_end_of(&set->zones[at]) < middle)
			at++;
		if (at < last && set->zones[at].start_ns <= middle)
			parent = node_of[at];
		node = child(out, parent, zone->name);
		if (node < 0)
			return -ENOMEM;
		out->nodes[node].total_ns += (double)zone->duration_ns;
		node_of[i] = (uint32_t)node;
	}
	return 0;
}

int zoneflame_make(const struct zoneset *set, struct zoneflame *out)
{
	uint32_t *node_of = malloc((set->count + 1) * sizeof(*node_of));
	const struct zoneset_track *above = NULL;
	int rc = node_of ? 0 : -ENOMEM;
	int64_t lane_node = 0;

	*out = (struct zoneflame){ 0 };
	for (size_t i = 0; i < set->track_count && !rc; i++) {
		const struct zoneset_track *track = &set->tracks[i];

		if (above && above->lane != track->lane)
			above = NULL;
		if (!above)
			lane_node = child(out, ZONEFLAME_ROOT, -1 - (int64_t)track->lane);
		rc = lane_node < 0 ? -ENOMEM
				   : zoneflame_add_track(set, track, above, (uint32_t)lane_node,
							 node_of, out);
		above = track;
	}
	free(node_of);
	return rc;
}

void zoneflame_fini(struct zoneflame *flame)
{
	free(flame->nodes);
	free(flame->slots);
	*flame = (struct zoneflame){ 0 };
}
