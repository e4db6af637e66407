#include "views/timeline/zone_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "views/query/json.h"
#include "views/timeline/zone_pieces.h"

#define BLOCK 16u
#define LATE 64u /* zones at the end of a track among which a late one is inserted */
#define TRACKS_MOST 200000u
#define ZONES_MOST UINT32_C(0x7fffffff) /* of a track */

/* ---- growing -------------------------------------------------------------------------------- */

static uint32_t blocks_of(uint32_t zones, unsigned level)
{
	unsigned shift = 4 * (level + 1);

	return (uint32_t)(((uint64_t)zones + (UINT64_C(1) << shift) - 1) >> shift);
}

static bool grow_track(struct zone_model_track *track)
{
	uint32_t more = track->room ? track->room + track->room / 2 : BLOCK;

	if (track->count < track->room)
		return true;
	more = (more + BLOCK - 1) / BLOCK * BLOCK;
	if (more > ZONES_MOST || !grow_to((void **)&track->start, more, sizeof(*track->start)) ||
	    !grow_to((void **)&track->duration, more, sizeof(*track->duration)) ||
	    !grow_to((void **)&track->name, more, sizeof(*track->name)) ||
	    !grow_to((void **)&track->busy, blocks_of(more, 0), sizeof(*track->busy)))
		return false;
	for (unsigned level = 0; level < ZONE_MODEL_LEVELS; level++)
		if (!grow_to((void **)&track->longest[level], blocks_of(more, level),
			     sizeof(*track->longest[0])))
			return false;
	track->room = more;
	return true;
}

/* ---- clocks, lanes -------------------------------------------------------------------------- */

int64_t zone_model_clock(struct zone_model *model, const struct store_clock *clock)
{
	if (!grow((void **)&model->clocks, &model->clock_room, model->clock_count, sizeof(*clock)))
		return -ENOMEM;
	model->clocks[model->clock_count] = *clock;
	return (int64_t)model->clock_count++;
}

int64_t zone_model_clock_ns(struct zone_model *model)
{
	const struct store_clock clock = { .mult = UINT64_C(1) << 32 };

	for (size_t i = 0; i < model->clock_count; i++)
		if (model->clocks[i].mult == clock.mult && !model->clocks[i].base_ticks &&
		    !model->clocks[i].base_ns)
			return (int64_t)i;
	return zone_model_clock(model, &clock);
}

int64_t zone_model_lane(struct zone_model *model, const struct zone_model_lane *lane)
{
	if (model->lane_count == ZONE_MODEL_LANES)
		return -ENOSPC;
	if (!grow((void **)&model->lanes, &model->lane_room, model->lane_count, sizeof(*lane)))
		return -ENOMEM;
	model->lanes[model->lane_count] = *lane;
	return (int64_t)model->lane_count++;
}

/* ---- adding --------------------------------------------------------------------------------- */

static bool grow_rows(struct zone_model_lane *lane, uint32_t row)
{
	if (row < lane->rows)
		return true;
	if (!grow_to((void **)&lane->tracks, row + 1, sizeof(*lane->tracks)))
		return false;
	memset(lane->tracks + lane->rows, 0, (row + 1 - lane->rows) * sizeof(*lane->tracks));
	return true;
}

static struct zone_model_track *add_track(struct zone_model *model, uint32_t lane, uint32_t row)
{
	struct zone_model_lane *to = &model->lanes[lane];

	if (model->track_count == TRACKS_MOST || !grow_rows(to, row) ||
	    !grow((void **)&model->tracks, &model->track_room, model->track_count,
		  sizeof(*model->tracks)))
		return NULL;
	to->rows = row < to->rows ? to->rows : row + 1;
	model->tracks[model->track_count] = (struct zone_model_track){ .lane = (uint16_t)lane,
								       .row = (uint16_t)row };
	to->tracks[row] = (uint32_t)++model->track_count;
	return &model->tracks[model->track_count - 1];
}

static struct zone_model_track *track_of(struct zone_model *model, uint32_t lane, uint32_t row)
{
	const struct zone_model_lane *of = &model->lanes[lane];

	if (row < of->rows && of->tracks[row])
		return &model->tracks[of->tracks[row] - 1];
	return add_track(model, lane, row);
}

const struct zone_model_track *zone_model_track(const struct zone_model *model, size_t lane,
						uint32_t row)
{
	const struct zone_model_lane *of = &model->lanes[lane];

	return row < of->rows && of->tracks[row] ? &model->tracks[of->tracks[row] - 1] : NULL;
}

static uint64_t end_ticks(const struct zone_model_track *track, uint32_t at)
{
	return track->start[at] + track->duration[at];
}

/* Updates the sums and the tree of longest zones for zone `at`, the last one. */
static void zone_model_enter(struct zone_model_track *track, uint32_t at)
{
	if (at % BLOCK == 0) {
		uint32_t block = at / BLOCK;
		uint64_t busy = block ? track->busy[block - 1] : 0;

		for (uint32_t i = block ? at - BLOCK : 0; i < at; i++)
			busy += track->duration[i];
		track->busy[block] = busy;
	}
	for (unsigned level = 0; level < ZONE_MODEL_LEVELS; level++) {
		unsigned shift = 4 * (level + 1);
		uint32_t *longest = &track->longest[level][at >> shift];

		/* Not the longest of this block, so of none that contains it. */
		if ((at & ((UINT32_C(1) << shift) - 1)) &&
		    track->duration[at] <= track->duration[*longest])
			break;
		*longest = at;
	}
}

/* The longest zone of a block before `from`, from the blocks one level below. */
static uint32_t longest_before(const struct zone_model_track *track, unsigned level, uint32_t from)
{
	unsigned below = 4 * level; /* zones of a child: 16^level */
	uint32_t first = from >> (below + 4) << (below + 4), best = first;

	for (uint32_t i = first; i < from; i += UINT32_C(1) << below) {
		uint32_t one = level ? track->longest[level - 1][i >> below] : i;

		if (track->duration[one] > track->duration[best])
			best = one;
	}
	return best;
}

/* Enters the zones at `from` and after it again. The longest zone of a block that is cut there may
   have been after the cut. */
static void enter_again(struct zone_model_track *track, uint32_t from)
{
	for (unsigned level = 0; level < ZONE_MODEL_LEVELS; level++)
		if (from & ((UINT32_C(1) << 4 * (level + 1)) - 1))
			track->longest[level][from >> 4 * (level + 1)] = longest_before(
				track, level, from);
	for (uint32_t i = from; i < track->count; i++)
		zone_model_enter(track, i);
}

static bool insert(struct zone_model_track *track, uint32_t at, uint64_t start, uint64_t duration,
		   uint32_t name)
{
	uint32_t behind = track->count - at;

	if (!grow_track(track))
		return false;
	memmove(track->start + at + 1, track->start + at, behind * sizeof(*track->start));
	memmove(track->duration + at + 1, track->duration + at, behind * sizeof(*track->duration));
	memmove(track->name + at + 1, track->name + at, behind * sizeof(*track->name));
	track->start[at] = start;
	track->duration[at] = duration;
	track->name[at] = name;
	track->count++;
	enter_again(track, at);
	return true;
}

static bool zone_model_append(struct zone_model_track *track, uint64_t start, uint64_t duration,
			      uint32_t name)
{
	uint32_t at = track->count;

	if (!grow_track(track))
		return false;
	track->start[at] = start;
	track->duration[at] = duration;
	track->name[at] = name;
	track->count++;
	zone_model_enter(track, at);
	return true;
}

struct interval {
	uint64_t start, end; /* ticks */
};

/* Where a zone fits into a track: at its end or among the last ones; -1: it would overlap. */
static int64_t place_in(const struct zone_model_track *track, struct interval *zone,
			uint64_t rounding)
{
	uint32_t at = track->count, least = at > LATE ? at - LATE : 0;
	uint64_t last_end = at ? end_ticks(track, at - 1) : 0;

	if (last_end <= zone->start)
		return at;
	if (last_end - zone->start <= rounding) {
		zone->start = last_end;
		zone->end = zone->end < last_end ? last_end : zone->end;
		return at;
	}
	while (at > least && track->start[at - 1] >= zone->end)
		at--;
	if (at && end_ticks(track, at - 1) > zone->start)
		return -1;
	return at;
}

static bool put(struct zone_model_track *track, uint32_t at, const struct interval *zone,
		uint32_t name)
{
	uint64_t duration = zone->end - zone->start;

	return at == track->count ? zone_model_append(track, zone->start, duration, name)
				  : insert(track, at, zone->start, duration, name);
}

int zone_model_add(struct zone_model *model, uint32_t lane, uint32_t row, uint64_t start_ticks,
		   uint64_t duration_ticks, uint32_t name)
{
	struct interval zone = { start_ticks, start_ticks + duration_ticks };
	bool valid = zone.end >= start_ticks && zone.end <= UINT64_MAX / 2;

	for (; valid && row < ZONE_MODEL_ROWS; row++) {
		struct zone_model_track *track = track_of(model, lane, row);
		int64_t at = track ? place_in(track, &zone, model->rounding_ticks) : -1;

		if (!track)
			break;
		if (at < 0)
			continue;
		if (!put(track, (uint32_t)at, &zone, name))
			return -ENOMEM;
		model->count++;
		model->lanes[lane].count++;
		return 0;
	}
	model->hidden++;
	return 0;
}

int64_t zone_model_end_ns(const struct zone_model *model)
{
	int64_t latest = 0;

	for (size_t i = 0; i < model->track_count; i++) {
		const struct zone_model_track *track = &model->tracks[i];
		struct zone_piece last;

		if (!track->count)
			continue;
		last = zone_pieces_zone(model, track, track->count - 1);
		latest = last.end_ns > latest ? last.end_ns : latest;
	}
	return latest;
}

/* ---- order of lanes ------------------------------------------------------------------------- */

/* Places of kinds within a rank. */
static const unsigned zone_model_places[ZONE_MODEL_KINDS] = {
	[ZONE_MODEL_CRITICAL] = 0, [ZONE_MODEL_THREAD] = 1,	 [ZONE_MODEL_TASK] = 1,
	[ZONE_MODEL_SAMPLES] = 1,  [ZONE_MODEL_COLLECTIVES] = 2, [ZONE_MODEL_QUEUE] = 3
};

static int zone_model_by_importance(const void *left, const void *right, void *context)
{
	const struct zone_model_lane *lanes = context;
	const uint32_t *a = left, *b = right;
	const struct zone_model_lane *x = &lanes[*a], *y = &lanes[*b];
	bool x_main = x->pid == x->tid && x->kind != ZONE_MODEL_TASK,
	     y_main = y->pid == y->tid && y->kind != ZONE_MODEL_TASK;

	if (x->rank != y->rank)
		return (uint32_t)x->rank < (uint32_t)y->rank ? -1 : 1;
	if (zone_model_places[x->kind] != zone_model_places[y->kind])
		return zone_model_places[x->kind] < zone_model_places[y->kind] ? -1 : 1;
	if (x_main != y_main)
		return y_main - x_main;
	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return *a < *b ? -1 : *a > *b;
}

uint32_t *zone_model_order(const struct zone_model *model, const struct rank_set *ranks,
			   size_t *out_count, size_t *out_hidden)
{
	uint32_t *order = malloc((model->lane_count + 1) * sizeof(*order));
	size_t chosen = 0, rest = model->lane_count;

	if (!order)
		return NULL;
	for (size_t i = 0; i < model->lane_count; i++)
		if (rank_set_has(ranks, model->lanes[i].rank))
			order[chosen++] = (uint32_t)i;
		else
			order[--rest] = (uint32_t)i;
	if (chosen)
		qsort_r(order, chosen, sizeof(*order), zone_model_by_importance, model->lanes);
	*out_count = chosen < ZONE_MODEL_LANES_SHOWN ? chosen : ZONE_MODEL_LANES_SHOWN;
	if (out_hidden)
		*out_hidden = chosen - *out_count;
	return order;
}

void zone_model_lane_json(const struct zone_model_lane *lane, struct buf *out)
{
	static const char *const kinds[ZONE_MODEL_KINDS] = { "thread",	    "task",	"queue",
							     "collectives", "critical", "samples" };

	buf_text(out, "\"rank\":");
	buf_print(out, lane->rank >= 0 ? "%d" : "null", lane->rank);
	buf_text(out, ",\"host\":");
	json_text(out, lane->host, strlen(lane->host));
	buf_print(out, ",\"kind\":\"%s\",\"note\":\"", kinds[lane->kind]);
	if (lane->rank >= 0)
		buf_print(out, "rank %d, ", lane->rank);
	if (zone_model_is_thread(lane))
		buf_print(out, "tid %d", lane->tid);
	else if (lane->kind == ZONE_MODEL_SAMPLES)
		buf_print(out, "tid %d, samples", lane->tid);
	else
		buf_text(out, lane->kind == ZONE_MODEL_QUEUE ? "device" : "all devices");
	buf_text(out, "\",\"name\":");
	json_text(out, lane->name, strlen(lane->name));
}

/* ---- removing ------------------------------------------------------------------------------- */

static void forget_track(struct zone_model *model, struct zone_model_track *track, uint32_t gone)
{
	uint32_t left = track->count - gone;

	memmove(track->start, track->start + gone, left * sizeof(*track->start));
	memmove(track->duration, track->duration + gone, left * sizeof(*track->duration));
	memmove(track->name, track->name + gone, left * sizeof(*track->name));
	track->count = left;
	model->count -= gone;
	model->lanes[track->lane].count -= gone;
	enter_again(track, 0);
}

void zone_model_forget(struct zone_model *model)
{
	uint64_t before = model->count;

	for (size_t i = 0; i < model->track_count; i++)
		forget_track(model, &model->tracks[i], model->tracks[i].count / 2);
	model->forgotten += before - model->count;
}

void zone_model_clear_devices(struct zone_model *model)
{
	for (size_t i = 0; i < model->track_count; i++)
		if (!zone_model_is_thread(&model->lanes[model->tracks[i].lane]))
			forget_track(model, &model->tracks[i], model->tracks[i].count);
}

void zone_model_fini(struct zone_model *model)
{
	for (size_t i = 0; i < model->track_count; i++) {
		struct zone_model_track *track = &model->tracks[i];

		free(track->start);
		free(track->duration);
		free(track->name);
		free(track->busy);
		for (unsigned level = 0; level < ZONE_MODEL_LEVELS; level++)
			free(track->longest[level]);
	}
	for (size_t i = 0; i < model->lane_count; i++)
		free(model->lanes[i].tracks);
	free(model->tracks);
	free(model->lanes);
	name_table_fini(&model->names);
	free(model->clocks);
	*model = (struct zone_model){ 0 };
}
