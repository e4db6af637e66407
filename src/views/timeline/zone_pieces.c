#include "views/timeline/zone_pieces.h"

#include <stdlib.h>

#include "base/grow.h"

#define BLOCK 16u

/* ---- clocks --------------------------------------------------------------------------------- */

static const struct store_clock *clock_of(const struct zone_model *model,
					  const struct zone_model_track *track)
{
	return &model->clocks[model->lanes[track->lane].clock];
}

/* Ticks of a span, rounded up; at most UINT64_MAX / 2. */
static uint64_t ticks_of_span(const struct store_clock *clock, uint64_t ns)
{
	unsigned __int128 ticks = ns;

	/* Ticks that are ns need no division, which is slow for 128 bits. */
	if (clock->mult && clock->mult != UINT64_C(1) << 32)
		ticks = (((unsigned __int128)ns << 32) + clock->mult - 1) / clock->mult;
	return ticks > UINT64_MAX / 2 ? UINT64_MAX / 2 : (uint64_t)ticks;
}

/* The first tick at `ns` or later: exactly the inverse of store_clock_ns(), of its first piece. */
static uint64_t ticks_before_pieces(const struct store_clock *clock, int64_t ns)
{
	uint64_t away;

	if (ns >= clock->base_ns) {
		away = ticks_of_span(clock, (uint64_t)ns - (uint64_t)clock->base_ns);
		return away > UINT64_MAX / 2 - clock->base_ticks / 2 ? UINT64_MAX / 2
								     : clock->base_ticks + away;
	}
	away = ticks_of_span(clock, (uint64_t)clock->base_ns - (uint64_t)ns);
	return away > clock->base_ticks ? 0 : clock->base_ticks - away;
}

static uint64_t ticks_of(const struct store_clock *clock, int64_t ns)
{
	uint64_t ticks = ticks_before_pieces(clock, ns);

	for (uint32_t i = 0; i < clock->piece_count && ticks >= clock->pieces[i].base_ticks; i++) {
		const struct store_clock piece = { .base_ticks = clock->pieces[i].base_ticks,
						   .base_ns = clock->pieces[i].base_ns,
						   .mult = clock->pieces[i].mult };

		/* A time that the step has left out is at its beginning. */
		ticks = ns < piece.base_ns ? piece.base_ticks : ticks_before_pieces(&piece, ns);
	}
	return ticks;
}

/* ---- searching ------------------------------------------------------------------------------ */

static uint32_t first_ending_after(const struct zone_model_track *track, uint64_t ticks)
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

uint32_t zone_pieces_first(const struct zone_model *model, const struct zone_model_track *track,
			   int64_t t_ns)
{
	return first_ending_after(track, ticks_of(clock_of(model, track), t_ns));
}

/* The first after i that starts at `ticks` or later; a galloping search, since it is near. */
static uint32_t first_starting_at(const struct zone_model_track *track, uint32_t i, uint64_t ticks)
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

static uint64_t busy_before(const struct zone_model_track *track, uint32_t at)
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

/* The longest of [from, to): each step takes the largest block that begins at `from` and ends by
   `to`. */
static uint32_t longest_in(const struct zone_model_track *track, uint32_t from, uint32_t to)
{
	uint32_t best = from;

	while (from < to) {
		int level = -1;
		uint32_t one;

		while (level + 1 < ZONE_MODEL_LEVELS &&
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

struct zone_piece zone_pieces_zone(const struct zone_model *model,
				   const struct zone_model_track *track, uint32_t at)
{
	const struct store_clock *clock = clock_of(model, track);
	int64_t start = at_least_0(store_clock_ns(clock, track->start[at]));
	int64_t duration = store_clock_span_ns(clock, track->duration[at]);

	return (struct zone_piece){ .start_ns = start,
				    .end_ns = start > INT64_MAX - duration ? INT64_MAX
									   : start + duration,
				    .busy_ns = duration,
				    .name = track->name[at],
				    .n = 1 };
}

bool zone_pieces_contain(const struct zone_model *model, const struct zone_model_track *track,
			 int64_t t_ns, uint32_t *at)
{
	for (; *at < track->count; ++*at) {
		struct zone_piece zone = zone_pieces_zone(model, track, *at);

		if (zone.end_ns >= t_ns)
			return zone.start_ns <= t_ns;
	}
	return false;
}

static void zone_pieces_emit(struct zone_pieces *out, const struct zone_piece *piece)
{
	if (!grow((void **)&out->list, &out->room, out->count, sizeof(*piece))) {
		out->failed = true;
		return;
	}
	out->merged |= piece->n > 1;
	out->list[out->count++] = *piece;
}

static struct zone_piece zone_pieces_merge(const struct zone_model *model,
					   const struct zone_model_track *track, uint32_t i,
					   uint32_t j)
{
	const struct store_clock *clock = clock_of(model, track);
	struct zone_piece piece = zone_pieces_zone(model, track, i),
			  last = zone_pieces_zone(model, track, j - 1);
	uint64_t busy = busy_before(track, j) - busy_before(track, i);

	piece.end_ns = last.end_ns;
	piece.busy_ns = store_clock_span_ns(clock, busy);
	piece.name = track->name[longest_in(track, i, j)];
	piece.n = j - i;
	return piece;
}

/* The end of the zones [i, …) that start in the bucket of i. A long one can only be the last, and
   is a piece of its own. */
static uint32_t zone_pieces_bucket_end(const struct zone_model *model,
				       const struct zone_model_track *track, uint32_t i,
				       unsigned level, uint64_t bucket_ticks)
{
	const struct store_clock *clock = clock_of(model, track);
	int64_t start = at_least_0(store_clock_ns(clock, track->start[i]));
	int64_t next = ((start >> level) + 1) << level;
	uint32_t j = first_starting_at(track, i, ticks_of(clock, next));

	return j - i > 1 && track->duration[j - 1] >= bucket_ticks ? j - 1 : j;
}

/* Pieces of zones [i, end) that start before `until`. */
static void zone_pieces_add(const struct zone_model *model, const struct zone_model_track *track,
			    uint32_t i, uint32_t end, uint64_t until, unsigned level,
			    struct zone_pieces *out)
{
	uint64_t bucket = ticks_of_span(clock_of(model, track), UINT64_C(1) << level);

	while (i < end && track->start[i] < until && !out->failed) {
		bool exact = !level || track->duration[i] >= bucket;
		uint32_t j = exact ? i + 1 : zone_pieces_bucket_end(model, track, i, level, bucket);
		struct zone_piece piece;

		j = j < end ? j : end;
		piece = j - i > 1 ? zone_pieces_merge(model, track, i, j)
				  : zone_pieces_zone(model, track, i);
		zone_pieces_emit(out, &piece);
		i = j;
	}
}

void zone_pieces_add_time(const struct zone_model *model, const struct zone_model_track *track,
			  int64_t from_ns, int64_t to_ns, unsigned level, struct zone_pieces *out)
{
	zone_pieces_add(model, track, zone_pieces_first(model, track, from_ns), track->count,
			ticks_of(clock_of(model, track), to_ns), level, out);
}

void zone_pieces_add_zones(const struct zone_model *model, const struct zone_model_track *track,
			   uint32_t first, uint32_t end, unsigned level, struct zone_pieces *out)
{
	zone_pieces_add(model, track, first, end, UINT64_MAX, level, out);
}
