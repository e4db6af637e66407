/* Level of detail: the pieces of a track in a stretch of time. Time by the number of pieces, not of
   zones. */
#include <stdlib.h>

#include "base/grow.h"
#include "serve/zoneindex.h"

#define BLOCK 16u

/* ---- clocks --------------------------------------------------------------------------------- */

static const struct store_clock *clock_of(const struct zoneindex *index,
					  const struct zoneindex_track *track)
{
	return &index->clocks[index->lanes[track->lane].clock];
}

static uint64_t divide_up(unsigned __int128 value, uint64_t by)
{
	unsigned __int128 result = by ? (value + by - 1) / by : value;

	return result > UINT64_MAX / 2 ? UINT64_MAX / 2 : (uint64_t)result;
}

/* The first tick that is told as ns or later: exactly the inverse of store_clock_ns(). */
static uint64_t ticks_of(const struct store_clock *clock, int64_t ns)
{
	uint64_t away;

	if (ns >= clock->base_ns) {
		away = divide_up((unsigned __int128)((uint64_t)ns - (uint64_t)clock->base_ns) << 32,
				 clock->mult);
		return away > UINT64_MAX / 2 - clock->base_ticks / 2 ? UINT64_MAX / 2
								     : clock->base_ticks + away;
	}
	away = divide_up((unsigned __int128)((uint64_t)clock->base_ns - (uint64_t)ns) << 32,
			 clock->mult);
	return away > clock->base_ticks ? 0 : clock->base_ticks - away;
}

static uint64_t ticks_of_span(const struct store_clock *clock, uint64_t ns)
{
	return divide_up((unsigned __int128)ns << 32, clock->mult);
}

/* ---- searching ------------------------------------------------------------------------------ */

static uint32_t first_ending_after(const struct zoneindex_track *track, uint64_t ticks)
{
	uint32_t low = 0, high = track->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (track->start[middle] + track->duration[middle] > ticks)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

uint32_t zoneindex_first(const struct zoneindex *index, const struct zoneindex_track *track,
			 int64_t t_ns)
{
	return first_ending_after(track, ticks_of(clock_of(index, track), t_ns));
}

/* The first behind i that starts at ticks or later; galloping, as it is near. */
static uint32_t first_starting_at(const struct zoneindex_track *track, uint32_t i, uint64_t ticks)
{
	uint32_t low = i, step = 1, high;

	while (step < track->count - low && track->start[low + step] < ticks) {
		low += step;
		step *= 2;
	}
	high = step < track->count - low ? low + step : track->count;
	low++;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (track->start[middle] < ticks)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t busy_before(const struct zoneindex_track *track, uint32_t at)
{
	uint32_t block = at / BLOCK;
	uint64_t busy;

	if (!at)
		return 0;
	if (at == track->count && at % BLOCK == 0)
		block--;
	busy = track->busy[block];
	for (uint32_t i = block * BLOCK; i < at; i++)
		busy += track->duration[i];
	return busy;
}

/* The longest of [from, to): up the tree while whole blocks lie inside, one step of the largest
   block at a time. */
static uint32_t longest_in(const struct zoneindex_track *track, uint32_t from, uint32_t to)
{
	uint32_t best = from;

	while (from < to) {
		int level = -1;
		uint32_t one;

		while (level + 1 < ZONEINDEX_LEVELS &&
		       !(from & ((UINT32_C(1) << 4 * (level + 2)) - 1)) &&
		       (uint64_t)from + (UINT64_C(1) << 4 * (level + 2)) <= to)
			level++;
		one = level < 0 ? from : track->longest[level][from >> 4 * (level + 1)];
		if (track->duration[one] > track->duration[best])
			best = one;
		from += level < 0 ? 1 : UINT32_C(1) << 4 * (level + 1);
	}
	return best;
}

/* ---- pieces --------------------------------------------------------------------------------- */

static int64_t at_least_0(int64_t ns)
{
	return ns > 0 ? ns : 0;
}

struct zoneindex_piece zoneindex_zone(const struct zoneindex *index,
				      const struct zoneindex_track *track, uint32_t at)
{
	const struct store_clock *clock = clock_of(index, track);
	int64_t start = at_least_0(store_clock_ns(clock, track->start[at]));
	int64_t duration = store_clock_span_ns(clock, track->duration[at]);

	return (struct zoneindex_piece){ .start_ns = start,
					 .end_ns = start > INT64_MAX - duration ? INT64_MAX
										: start + duration,
					 .busy_ns = duration,
					 .name = track->name[at],
					 .n = 1 };
}

static void zonepieces_emit(struct zoneindex_pieces *out, const struct zoneindex_piece *piece)
{
	if (!grow((void **)&out->list, &out->room, out->count, sizeof(*out->list))) {
		out->failed = true;
		return;
	}
	out->merged |= piece->n > 1;
	out->list[out->count++] = *piece;
}

static struct zoneindex_piece zonepieces_merge(const struct zoneindex *index,
					       const struct zoneindex_track *track, uint32_t i,
					       uint32_t j)
{
	const struct store_clock *clock = clock_of(index, track);
	struct zoneindex_piece piece = zoneindex_zone(index, track, i),
			       last = zoneindex_zone(index, track, j - 1);
	uint64_t busy = busy_before(track, j) - busy_before(track, i);

	piece.end_ns = last.end_ns;
	piece.busy_ns = store_clock_span_ns(clock, busy);
	piece.name = track->name[longest_in(track, i, j)];
	piece.n = j - i;
	return piece;
}

/* Zones of [i, …) that start in the bucket of i; a long one may only be the last, and is left for
   itself. */
static uint32_t zonepieces_bucket_end(const struct zoneindex *index,
				      const struct zoneindex_track *track, uint32_t i,
				      unsigned level, uint64_t bucket_ticks)
{
	const struct store_clock *clock = clock_of(index, track);
	int64_t start = at_least_0(store_clock_ns(clock, track->start[i]));
	int64_t next = ((start >> level) + 1) << level;
	uint32_t j = first_starting_at(track, i, ticks_of(clock, next));

	return j - i > 1 && track->duration[j - 1] >= bucket_ticks ? j - 1 : j;
}

void zoneindex_pieces(const struct zoneindex *index, const struct zoneindex_track *track,
		      int64_t from_ns, int64_t to_ns, unsigned level, struct zoneindex_pieces *out)
{
	const struct store_clock *clock = clock_of(index, track);
	uint64_t to = ticks_of(clock, to_ns), bucket = ticks_of_span(clock, UINT64_C(1) << level);
	uint32_t i = first_ending_after(track, ticks_of(clock, from_ns));

	while (i < track->count && track->start[i] < to && !out->failed) {
		bool exact = !level || track->duration[i] >= bucket;
		uint32_t j = exact ? i + 1 : zonepieces_bucket_end(index, track, i, level, bucket);
		struct zoneindex_piece piece = j - i > 1 ? zonepieces_merge(index, track, i, j)
							 : zoneindex_zone(index, track, i);

		zonepieces_emit(out, &piece);
		i = j;
	}
}
