#include "serve/zoneindex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define BLOCK 16u
#define LATE 64u /* so far back a zone that comes late is put in its place */
#define TRACKS_MOST 200000u
#define ZONES_MOST UINT32_C(0x7fffffff) /* of a track */

/* ---- growing -------------------------------------------------------------------------------- */

static bool resize(void **data, size_t count, size_t each)
{
	void *grown = realloc(*data, (count ? count : 1) * each);

	if (grown)
		*data = grown;
	return grown;
}

static uint32_t blocks_of(uint32_t zones, unsigned level)
{
	unsigned shift = 4 * (level + 1);

	return (uint32_t)(((uint64_t)zones + (UINT64_C(1) << shift) - 1) >> shift);
}

static bool grow_track(struct zoneindex_track *track)
{
	uint32_t more = track->room ? track->room + track->room / 2 : BLOCK;

	if (track->count < track->room)
		return true;
	more = (more + BLOCK - 1) / BLOCK * BLOCK;
	if (more > ZONES_MOST || !resize((void **)&track->start, more, sizeof(*track->start)) ||
	    !resize((void **)&track->duration, more, sizeof(*track->duration)) ||
	    !resize((void **)&track->name, more, sizeof(*track->name)) ||
	    !resize((void **)&track->busy, blocks_of(more, 0), sizeof(*track->busy)))
		return false;
	for (unsigned level = 0; level < ZONEINDEX_LEVELS; level++)
		if (!resize((void **)&track->longest[level], blocks_of(more, level),
			    sizeof(*track->longest[0])))
			return false;
	track->room = more;
	return true;
}

/* ---- names, clocks, lanes ------------------------------------------------------------------- */

int64_t zoneindex_name(struct zoneindex *index, const struct zonenames_key *key)
{
	return zonenames_find(&index->names, key, ZONEINDEX_NAMES);
}

int64_t zoneindex_clock(struct zoneindex *index, const struct store_clock *clock)
{
	if (!grow((void **)&index->clocks, &index->clock_room, index->clock_count, sizeof(*clock)))
		return -ENOMEM;
	index->clocks[index->clock_count] = *clock;
	return (int64_t)index->clock_count++;
}

int64_t zoneindex_lane(struct zoneindex *index, const struct zoneindex_lane *lane)
{
	if (index->lane_count == ZONEINDEX_LANES)
		return -ENOSPC;
	if (!grow((void **)&index->lanes, &index->lane_room, index->lane_count, sizeof(*lane)))
		return -ENOMEM;
	index->lanes[index->lane_count] = *lane;
	return (int64_t)index->lane_count++;
}

/* ---- adding --------------------------------------------------------------------------------- */

static struct zoneindex_track *track_of(struct zoneindex *index, uint32_t lane, uint32_t row)
{
	uint32_t *place = &index->lanes[lane].tracks[row];

	if (*place)
		return &index->tracks[*place - 1];
	if (index->track_count == TRACKS_MOST ||
	    !grow((void **)&index->tracks, &index->track_room, index->track_count,
		  sizeof(struct zoneindex_track)))
		return NULL;
	index->tracks[index->track_count] = (struct zoneindex_track){ .lane = (uint16_t)lane,
								      .row = (uint16_t)row };
	*place = (uint32_t)++index->track_count;
	if (index->lanes[lane].rows <= row)
		index->lanes[lane].rows = row + 1;
	return &index->tracks[*place - 1];
}

static uint64_t end_ticks(const struct zoneindex_track *track, uint32_t at)
{
	return track->start[at] + track->duration[at];
}

/* The tree's leaves and branches over zone `at`, which is the last. */
static void zoneindex_enter(struct zoneindex_track *track, uint32_t at)
{
	if (at % BLOCK == 0) {
		uint32_t block = at / BLOCK;
		uint64_t busy = block ? track->busy[block - 1] : 0;

		for (uint32_t i = block ? at - BLOCK : 0; i < at; i++)
			busy += track->duration[i];
		track->busy[block] = busy;
	}
	for (unsigned level = 0; level < ZONEINDEX_LEVELS; level++) {
		unsigned shift = 4 * (level + 1);
		uint32_t *longest = &track->longest[level][at >> shift];

		/* Not the longest of a block, so not of one that holds that block. */
		if ((at & ((UINT32_C(1) << shift) - 1)) &&
		    track->duration[at] <= track->duration[*longest])
			break;
		*longest = at;
	}
}

/* The longest of the first zones of a block, those before `from`, out of the blocks below it. */
static uint32_t longest_before(const struct zoneindex_track *track, unsigned level, uint32_t from)
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

/* Enters again what is at `from` and behind it. Of a block that is cut there, the longest may have
   been behind the cut. */
static void enter_again(struct zoneindex_track *track, uint32_t from)
{
	for (unsigned level = 0; level < ZONEINDEX_LEVELS; level++)
		if (from & ((UINT32_C(1) << 4 * (level + 1)) - 1))
			track->longest[level][from >> 4 * (level + 1)] = longest_before(
				track, level, from);
	for (uint32_t i = from; i < track->count; i++)
		zoneindex_enter(track, i);
}

static bool insert(struct zoneindex_track *track, uint32_t at, uint64_t start, uint64_t duration,
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

static bool zoneindex_append(struct zoneindex_track *track, uint64_t start, uint64_t duration,
			     uint32_t name)
{
	uint32_t at = track->count;

	if (!grow_track(track))
		return false;
	track->start[at] = start;
	track->duration[at] = duration;
	track->name[at] = name;
	track->count++;
	zoneindex_enter(track, at);
	return true;
}

/* Where a zone fits into a track: at its end, or among the last ones; -1: it would overlap. */
static int64_t place_in(const struct zoneindex_track *track, uint64_t start, uint64_t end)
{
	uint32_t at = track->count, least = at > LATE ? at - LATE : 0;

	if (!at || end_ticks(track, at - 1) <= start)
		return at;
	while (at > least && track->start[at - 1] >= end)
		at--;
	if (at && end_ticks(track, at - 1) > start)
		return -1;
	return at;
}

int zoneindex_add(struct zoneindex *index, uint32_t lane, uint32_t row, uint64_t start_ticks,
		  uint64_t duration_ticks, uint32_t name)
{
	uint64_t end = start_ticks + duration_ticks;

	if (end < start_ticks || end > UINT64_MAX / 2) {
		index->hidden++;
		return 0;
	}
	for (; row < ZONEINDEX_ROWS; row++) {
		struct zoneindex_track *track = track_of(index, lane, row);
		int64_t at = track ? place_in(track, start_ticks, end) : -1;

		if (!track)
			break;
		if (at < 0)
			continue;
		if (at == (int64_t)track->count
			    ? !zoneindex_append(track, start_ticks, duration_ticks, name)
			    : !insert(track, (uint32_t)at, start_ticks, duration_ticks, name))
			return -ENOMEM;
		index->count++;
		index->lanes[lane].count++;
		return 0;
	}
	index->hidden++;
	return 0;
}

int64_t zoneindex_end_ns(const struct zoneindex *index)
{
	int64_t latest = 0;

	for (size_t i = 0; i < index->track_count; i++) {
		const struct zoneindex_track *track = &index->tracks[i];
		struct zoneindex_piece last;

		if (!track->count)
			continue;
		last = zoneindex_zone(index, track, track->count - 1);
		latest = last.end_ns > latest ? last.end_ns : latest;
	}
	return latest;
}

static void forget_track(struct zoneindex *index, struct zoneindex_track *track, uint32_t gone)
{
	uint32_t left = track->count - gone;

	memmove(track->start, track->start + gone, left * sizeof(*track->start));
	memmove(track->duration, track->duration + gone, left * sizeof(*track->duration));
	memmove(track->name, track->name + gone, left * sizeof(*track->name));
	track->count = left;
	index->count -= gone;
	index->lanes[track->lane].count -= gone;
	enter_again(track, 0);
}

void zoneindex_forget(struct zoneindex *index)
{
	uint64_t before = index->count;

	for (size_t i = 0; i < index->track_count; i++)
		forget_track(index, &index->tracks[i], index->tracks[i].count / 2);
	index->forgotten += before - index->count;
}

void zoneindex_clear(struct zoneindex *index, enum zoneindex_kind kind)
{
	for (size_t i = 0; i < index->track_count; i++)
		if (index->lanes[index->tracks[i].lane].kind == kind)
			forget_track(index, &index->tracks[i], index->tracks[i].count);
}

void zoneindex_fini(struct zoneindex *index)
{
	for (size_t i = 0; i < index->track_count; i++) {
		struct zoneindex_track *track = &index->tracks[i];

		free(track->start);
		free(track->duration);
		free(track->name);
		free(track->busy);
		for (unsigned level = 0; level < ZONEINDEX_LEVELS; level++)
			free(track->longest[level]);
	}
	free(index->tracks);
	free(index->lanes);
	zonenames_fini(&index->names);
	free(index->clocks);
	*index = (struct zoneindex){ 0 };
}
