#include "views/timeline/zone_flame.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/grow.h"
#include "views/timeline/zone_pieces.h"

#define LEAST_SHARE 5000 /* nodes below that part of the whole are left out */

/* ---- making --------------------------------------------------------------------------------- */

/* The zones of a track that are in the range, and the node of each. */
struct row {
	const struct zone_model_track *track;
	uint32_t first, end;
	uint32_t *nodes;
	size_t room;
};

struct flame {
	const struct zone_model *model;
	const struct zone_flame_range *range;
	struct call_tree *tree;
	uint32_t lane_node;
	struct row above, row; /* above: the nearest track over this one; empty at first */
};

/* A zone of the row, cut at the ends of the range. */
static struct zone_piece zone_flame_zone(const struct flame *flame, uint32_t at)
{
	struct zone_piece zone = zone_pieces_zone(flame->model, flame->row.track, at);

	if (zone.start_ns < flame->range->from_ns)
		zone.start_ns = flame->range->from_ns;
	if (zone.end_ns > flame->range->to_ns)
		zone.end_ns = flame->range->to_ns;
	if (zone.end_ns < zone.start_ns)
		zone.end_ns = zone.start_ns;
	return zone;
}

static bool zone_flame_begin_row(struct flame *flame, const struct zone_model_track *track)
{
	struct row *row = &flame->row;

	row->track = track;
	row->first = flame->range->from_ns == INT64_MIN
			     ? 0
			     : zone_pieces_first(flame->model, track, flame->range->from_ns);
	row->end = row->first;
	return grow_zeroed((void **)&row->nodes, &row->room, track->count - row->first,
			   sizeof(*row->nodes));
}

/* The node of the zone of the row above that contains t. */
static uint32_t zone_flame_parent(const struct flame *flame, uint32_t *at, int64_t t_ns)
{
	const struct row *above = &flame->above;

	if (above->first == above->end ||
	    !zone_pieces_contain(flame->model, above->track, t_ns, at) || *at >= above->end)
		return flame->lane_node;
	return above->nodes[*at - above->first];
}

/* Clocks round, so a child may begin slightly before its parent: its middle decides. */
static void zone_flame_add_zone(struct flame *flame, uint32_t at, uint32_t *above_at)
{
	struct zone_piece zone = zone_flame_zone(flame, at);
	int64_t duration = zone.end_ns - zone.start_ns;
	uint32_t parent = zone_flame_parent(flame, above_at, zone.start_ns + duration / 2);
	uint32_t node = call_tree_child(flame->tree, parent, zone.name);

	/* A full tree returns the parent; zone_flame_make() then fails. */
	if (node != parent)
		flame->tree->nodes[node].values[ZONE_FLAME_TOTAL_NS] += (double)duration;
	flame->row.nodes[at - flame->row.first] = node;
	flame->row.end = at + 1;
}

static int zone_flame_add_track(struct flame *flame, const struct zone_model_track *track)
{
	uint32_t above_at = flame->above.first;
	struct row row;

	if (!zone_flame_begin_row(flame, track))
		return -ENOMEM;
	for (uint32_t i = flame->row.first; i < track->count; i++) {
		if (zone_pieces_zone(flame->model, track, i).start_ns >= flame->range->to_ns)
			break;
		zone_flame_add_zone(flame, i, &above_at);
	}
	row = flame->above;
	flame->above = flame->row;
	flame->row = row;
	return 0;
}

static int zone_flame_add_lane(struct flame *flame, uint32_t lane)
{
	const struct zone_model_track *track;
	bool begun = false;
	int rc = 0;

	flame->above.first = flame->above.end = 0;
	for (uint32_t row = 0; row < flame->model->lanes[lane].rows && !rc; row++) {
		track = zone_model_track(flame->model, lane, row);
		if (!track)
			continue;
		if (!begun)
			flame->lane_node = call_tree_child(flame->tree, 0, ZONE_FLAME_LANE | lane);
		begun = true;
		rc = flame->lane_node ? zone_flame_add_track(flame, track) : -ENOMEM;
	}
	return rc;
}

static bool zone_flame_wants(const struct flame *flame, size_t lane)
{
	const struct zone_model_lane *about = &flame->model->lanes[lane];

	if (flame->range->lane >= 0)
		return flame->range->lane == (int64_t)lane;
	return about->kind <= ZONE_MODEL_QUEUE && rank_set_has(flame->range->ranks, about->rank);
}

int zone_flame_make(const struct zone_model *model, const struct zone_flame_range *range,
		    struct call_tree *out)
{
	struct flame flame = { .model = model, .range = range, .tree = out };
	int rc = call_tree_init(out);

	for (size_t lane = 0; lane < model->lane_count && !rc; lane++)
		if (zone_flame_wants(&flame, lane))
			rc = zone_flame_add_lane(&flame, (uint32_t)lane);
	free(flame.above.nodes);
	free(flame.row.nodes);
	return rc || !out->full ? rc : -ENOMEM;
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool zone_flame_is_lane(const struct call_tree_node *node)
{
	return !node->parent;
}

double zone_flame_whole_ns(const struct call_tree *tree)
{
	double whole_ns = 0;

	for (size_t i = 1; i < tree->count; i++)
		if (!zone_flame_is_lane(&tree->nodes[i]) &&
		    zone_flame_is_lane(&tree->nodes[tree->nodes[i].parent]))
			whole_ns += tree->nodes[i].values[ZONE_FLAME_TOTAL_NS];
	return whole_ns;
}

static int64_t zone_flame_name(const struct call_tree_node *node, uint32_t *numbers,
			       size_t *out_names)
{
	if (zone_flame_is_lane(node))
		return -1 - (int64_t)(node->frame & ~ZONE_FLAME_LANE);
	if (!numbers)
		return node->frame;
	if (!numbers[node->frame])
		numbers[node->frame] = (uint32_t)++ * out_names;
	return (int64_t)numbers[node->frame] - 1;
}

int zone_flame_json(const struct call_tree *tree, uint32_t *numbers, size_t *out_names,
		    struct buf *out)
{
	double least_ns = zone_flame_whole_ns(tree) / LEAST_SHARE;
	int64_t *places = malloc((tree->count + 1) * sizeof(*places)), shown = 0;

	if (!places)
		return -ENOMEM;
	for (size_t i = 1; i < tree->count; i++) {
		const struct call_tree_node *node = &tree->nodes[i];
		double total_ns = node->values[ZONE_FLAME_TOTAL_NS];
		bool lane = zone_flame_is_lane(node);

		places[i] = -1;
		if (!lane && (places[node->parent] < 0 || total_ns < least_ns))
			continue;
		buf_print(out, "%s[%" PRId64 ",%" PRId64 ",%.0f]", shown ? "," : "",
			  zone_flame_name(node, numbers, out_names),
			  lane ? -1 : places[node->parent], total_ns);
		places[i] = shown++;
	}
	free(places);
	return 0;
}
