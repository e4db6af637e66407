#include "views/timeline/step_map.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "kymo/atomic.h"
#include "store/parallel.h"

#define LEVEL 100.0f /* a cell for a value of the median duration above the median */
#define BAND 32 /* steps whose medians are computed together, for the cache */
#define BANDS_AT_ONCE 8 /* by one thread */

/* ---- adding --------------------------------------------------------------------------------- */

/* The place of a rank, or of the first greater one. */
static size_t step_map_place(const struct step_map *map, int32_t rank)
{
	size_t low = 0, high = map->rank_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->ranks[middle].rank < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct step_map_rank *step_map_find(const struct step_map *map, int32_t rank)
{
	/* A map that is filled from one stream has one. */
	size_t at = map->rank_count == 1 ? 0 : step_map_place(map, rank);

	return at < map->rank_count && map->ranks[at].rank == rank ? &map->ranks[at] : NULL;
}

static struct step_map_rank *step_map_rank_of(struct step_map *map, int32_t rank, int64_t step)
{
	struct step_map_rank *found = step_map_find(map, rank);
	size_t at;

	if (found)
		return found;
	at = step_map_place(map, rank);
	if (!grow((void **)&map->ranks, &map->rank_room, map->rank_count, sizeof(*map->ranks)))
		return NULL;
	memmove(&map->ranks[at + 1], &map->ranks[at], (map->rank_count - at) * sizeof(*map->ranks));
	map->ranks[at] = (struct step_map_rank){ .rank = rank, .first = step };
	map->rank_count++;
	return &map->ranks[at];
}

static void step_map_empty(struct step_map_step *steps, size_t count)
{
	for (size_t i = 0; i < count; i++)
		steps[i] = (struct step_map_step){ .duration_ns = -1, .wait_ns = -1 };
}

/* How many steps to add before the first. Steps that come in descending order do not move the
   others each time. */
static uint64_t step_map_before(const struct step_map_rank *rank, int64_t step)
{
	uint64_t before = step < rank->first ? (uint64_t)(rank->first - step) : 0;
	uint64_t more = rank->count / 2;

	if (!before || before >= more || (uint64_t)rank->first < more)
		return before;
	return more;
}

/* Room for steps from `step` on, or to it. 0, -ENOSPC: too many, or -ENOMEM. */
static int step_map_reach(struct step_map *map, struct step_map_rank *rank, int64_t step)
{
	uint64_t before = step_map_before(rank, step);
	uint64_t wanted = before ? rank->count + before
				 : (uint64_t)step - (uint64_t)rank->first + 1;
	uint64_t more = wanted > rank->count ? wanted - rank->count : 0;

	if (more > STEP_MAP_STEPS_MOST - map->cells)
		return -ENOSPC;
	if (wanted > rank->room) {
		size_t room = wanted > rank->room * 3 / 2 ? wanted + 16 : rank->room * 3 / 2;

		if (!grow_to((void **)&rank->steps, room, sizeof(*rank->steps)))
			return -ENOMEM;
		rank->room = room;
	}
	if (before)
		memmove(rank->steps + before, rank->steps, rank->count * sizeof(*rank->steps));
	step_map_empty(before ? rank->steps : rank->steps + rank->count, more);
	rank->first -= (int64_t)before;
	rank->count += more;
	map->cells += more;
	return 0;
}

int step_map_expect(struct step_map *map, int32_t rank, int64_t first, uint64_t count)
{
	struct step_map_rank *of;

	if (rank < 0 || first < 0 || !count || count > STEP_MAP_STEPS_MOST - map->cells)
		return 0;
	of = step_map_rank_of(map, rank, first);
	if (!of)
		return -ENOMEM;
	if (of->room >= count || of->count)
		return 0;
	if (!grow_to((void **)&of->steps, count, sizeof(*of->steps)))
		return -ENOMEM;
	of->room = count;
	return 0;
}

/* Medians are an array of all steps. */
static bool step_map_is_near(const struct step_map *map, int64_t step)
{
	int64_t first = step < map->first ? step : map->first;
	int64_t end = step >= map->end ? step + 1 : map->end;

	return map->first == map->end || (uint64_t)(end - first) <= STEP_MAP_STEPS_MOST;
}

static void step_map_widen(struct step_map *map, int64_t step)
{
	bool none = map->first == map->end;

	if (none || step < map->first) {
		map->first = step;
		map->changed_from = step;
		map->median_count = 0;
	}
	if (none || step >= map->end)
		map->end = step + 1;
	if (step < map->changed_from)
		map->changed_from = step;
}

int step_map_add(struct step_map *map, int32_t rank, int64_t step, int64_t start_ns,
		 int64_t duration_ns)
{
	struct step_map_rank *of;
	int rc;

	if (rank < 0 || step < 0 || step > INT64_MAX / 4 || duration_ns < 0)
		return 0;
	if (!step_map_is_near(map, step)) {
		map->hidden++;
		return 0;
	}
	of = step_map_rank_of(map, rank, step);
	rc = of ? step_map_reach(map, of, step) : -ENOMEM;
	if (rc) {
		map->hidden += rc == -ENOSPC;
		return rc == -ENOSPC ? 0 : rc;
	}
	of->steps[step - of->first] = (struct step_map_step){ .start_ns = start_ns,
							      .duration_ns = (float)duration_ns,
							      .wait_ns = -1 };
	step_map_widen(map, step);
	return 0;
}

/* Takes all steps of a rank that the map does not have. False: some need a check of their own. */
static bool step_map_adopt(struct step_map *map, struct step_map_rank *of)
{
	int64_t last = of->first + (int64_t)of->count - 1;
	struct step_map_rank *to;

	if (step_map_find(map, of->rank) || of->count > STEP_MAP_STEPS_MOST - map->cells ||
	    !step_map_is_near(map, of->first) || !step_map_is_near(map, last))
		return false;
	to = step_map_rank_of(map, of->rank, of->first);
	if (!to)
		return false;
	*to = *of;
	of->steps = NULL;
	of->count = of->room = 0;
	map->cells += to->count;
	step_map_widen(map, to->first);
	step_map_widen(map, last);
	return true;
}

int step_map_join(struct step_map *map, struct step_map *from)
{
	int rc = 0;

	map->hidden += from->hidden;
	for (size_t i = 0; i < from->rank_count && !rc; i++) {
		struct step_map_rank *of = &from->ranks[i];

		if (!of->count || step_map_adopt(map, of))
			continue;
		for (size_t k = 0; k < of->count && !rc; k++)
			if (of->steps[k].duration_ns >= 0)
				rc = step_map_add(map, of->rank, of->first + (int64_t)k,
						  of->steps[k].start_ns,
						  (int64_t)of->steps[k].duration_ns);
	}
	step_map_fini(from);
	return rc;
}

/* The step of a rank, or NULL. */
static struct step_map_step *step_map_at(const struct step_map_rank *rank, int64_t step)
{
	if (step < rank->first || (uint64_t)(step - rank->first) >= rank->count ||
	    rank->steps[step - rank->first].duration_ns < 0)
		return NULL;
	return &rank->steps[step - rank->first];
}

void step_map_add_wait(struct step_map *map, int32_t rank, int64_t step, int64_t wait_ns)
{
	struct step_map_rank *of = step_map_find(map, rank);
	struct step_map_step *at = of ? step_map_at(of, step) : NULL;

	if (!at || wait_ns < 0)
		return;
	at->wait_ns = (at->wait_ns > 0 ? at->wait_ns : 0) + (float)wait_ns;
	map->waits = true;
	if (step < map->changed_from)
		map->changed_from = step;
}

void step_map_forget_waits(struct step_map *map)
{
	for (size_t i = 0; i < map->rank_count; i++)
		for (size_t k = 0; k < map->ranks[i].count; k++)
			map->ranks[i].steps[k].wait_ns = -1;
	map->waits = false;
	map->changed_from = map->first;
}

void step_map_fini(struct step_map *map)
{
	for (size_t i = 0; i < map->rank_count; i++)
		free(map->ranks[i].steps);
	free(map->ranks);
	free(map->median_ns);
	free(map->median_wait_ns);
	*map = (struct step_map){ 0 };
}

/* ---- medians -------------------------------------------------------------------------------- */

/* The middle of values, whose order is changed; of an even number the lower one. */
static float step_map_median(float *values, size_t count)
{
	size_t low = 0, high = count, wanted = (count - 1) / 2;

	while (high - low > 1) {
		float pivot = values[low + (high - low) / 2];
		size_t less = low, more = high, i = low;

		while (i < more) {
			float value = values[i];

			if (value < pivot) {
				values[i++] = values[less];
				values[less++] = value;
			} else if (value > pivot) {
				values[i] = values[--more];
				values[more] = value;
			} else {
				i++;
			}
		}
		if (wanted >= less && wanted < more)
			return pivot;
		if (wanted < less)
			high = less;
		else
			low = more;
	}
	return values[low];
}

/* The medians of up to BAND steps from `step` on, of durations or waits; -1: no rank has one. */
static void step_map_band(const struct step_map *map, int64_t step, size_t count, float *values,
			  bool waits, float *out)
{
	size_t counts[BAND] = { 0 };

	for (size_t i = 0; i < map->rank_count; i++)
		for (size_t k = 0; k < count; k++) {
			const struct step_map_step *at = step_map_at(&map->ranks[i],
								     step + (int64_t)k);
			float value = !at ? -1 : waits ? at->wait_ns : at->duration_ns;

			if (value >= 0)
				values[k * map->rank_count + counts[k]++] = value;
		}
	for (size_t k = 0; k < count; k++)
		out[k] = counts[k] ? step_map_median(values + k * map->rank_count, counts[k]) : -1;
}

struct step_map_bands {
	struct step_map *map;
	int no_memory; /* of any thread */
};

/* Some bands, with memory of their own. */
static void step_map_settle_some(size_t number, void *context)
{
	struct step_map_bands *bands = context;
	struct step_map *map = bands->map;
	int64_t step = map->changed_from + (int64_t)number * BAND * BANDS_AT_ONCE;
	float *values = malloc(BAND * map->rank_count * sizeof(*values));

	if (!values)
		kymo__store_relaxed(&bands->no_memory, 1);
	for (int i = 0; values && i < BANDS_AT_ONCE && step < map->end; i++, step += BAND) {
		size_t left = (size_t)(map->end - step), count = left < BAND ? left : BAND;
		size_t at = (size_t)(step - map->first);

		step_map_band(map, step, count, values, false, map->median_ns + at);
		if (map->waits)
			step_map_band(map, step, count, values, true, map->median_wait_ns + at);
		else
			for (size_t k = 0; k < count; k++)
				map->median_wait_ns[at + k] = -1;
	}
	free(values);
}

int step_map_settle(struct step_map *map)
{
	struct step_map_bands bands = { .map = map };
	size_t steps = (size_t)(map->end - map->first), changed;

	if (!steps || (map->median_count == steps && map->changed_from == map->end))
		return 0;
	if (!grow_to((void **)&map->median_ns, steps, sizeof(float)) ||
	    !grow_to((void **)&map->median_wait_ns, steps, sizeof(float)))
		return -ENOMEM;
	changed = (size_t)(map->end - map->changed_from);
	parallel_each((changed + BAND * BANDS_AT_ONCE - 1) / (BAND * BANDS_AT_ONCE),
		      step_map_settle_some, &bands);
	if (bands.no_memory)
		return -ENOMEM;
	map->median_count = steps;
	map->changed_from = map->end;
	return 0;
}

/* ---- cells ---------------------------------------------------------------------------------- */

/* How far a step is from the median of its ranks, in median durations. */
static float step_map_distance(const struct step_map *map, const struct step_map_step *step,
			       int64_t number, enum step_map_value of)
{
	size_t at = (size_t)(number - map->first);
	float duration = map->median_ns[at], median = duration, value = step->duration_ns;

	if (of == STEP_MAP_WAIT) {
		median = map->median_wait_ns[at];
		value = step->wait_ns;
	}
	if (value < 0 || median < 0 || duration <= 0)
		return NAN;
	return (value - median) / duration;
}

static signed char step_map_cell(float distance)
{
	float scaled = distance * LEVEL;

	return (signed char)(scaled > 127 ? 127 : scaled < -127 ? -127 : lrintf(scaled));
}

/* Puts a value into a cell, unless a value that is farther from the median is there. */
static void step_map_put(signed char *cell, float distance)
{
	signed char value;

	if (isnan(distance))
		return;
	value = step_map_cell(distance);
	if (*cell == STEP_MAP_NONE || abs(value) > abs(*cell))
		*cell = value;
}

/* Cuts the part to what there is: at least one cell, if the map has a step. */
static void step_map_cut(const struct step_map *map, size_t ranks, struct step_map_part *part)
{
	part->from = part->from < map->first ? map->first : part->from;
	part->to = part->to > map->end ? map->end : part->to;
	part->to = part->to < part->from ? part->from : part->to;
	part->end_rank = part->end_rank > ranks ? ranks : part->end_rank;
	part->first_rank = part->first_rank > part->end_rank ? part->end_rank : part->first_rank;
	if (part->columns > (uint64_t)(part->to - part->from))
		part->columns = (size_t)(part->to - part->from);
	if (part->rows > part->end_rank - part->first_rank)
		part->rows = part->end_rank - part->first_rank;
}

static size_t step_map_chosen(const struct step_map *map, const struct rank_set *ranks)
{
	size_t count = 0;

	for (size_t i = 0; i < map->rank_count; i++)
		count += rank_set_has(ranks, map->ranks[i].rank);
	return count;
}

/* The first step of a column, counted from the part's first. */
static uint64_t step_map_column(const struct step_map_part *part, uint64_t column)
{
	uint64_t steps = (uint64_t)(part->to - part->from);

	return (column * steps + part->columns - 1) / part->columns;
}

/* One rank's steps in a row of cells. */
static void step_map_row(const struct step_map *map, const struct step_map_rank *rank,
			 const struct step_map_part *part, signed char *row)
{
	int64_t step = rank->first > part->from ? rank->first : part->from;
	int64_t end = rank->first + (int64_t)rank->count;
	uint64_t at = (uint64_t)(step - part->from);
	uint64_t column = at * part->columns / (uint64_t)(part->to - part->from);
	uint64_t next = step_map_column(part, column + 1);

	for (; step < end && step < part->to; step++, at++) {
		const struct step_map_step *here = &rank->steps[step - rank->first];

		while (at >= next)
			next = step_map_column(part, ++column + 1);
		if (here->duration_ns >= 0)
			step_map_put(&row[column], step_map_distance(map, here, step, part->of));
	}
}

struct step_map_rows {
	const struct step_map *map;
	const struct step_map_part *part;
	const uint32_t *chosen; /* numbers of the part's ranks */
	signed char *cells;
};

/* Row `number` of the cells, of one rank or several. */
static void step_map_one_row(size_t number, void *context)
{
	const struct step_map_rows *rows = context;
	const struct step_map_part *part = rows->part;
	size_t ranks = part->end_rank - part->first_rank;
	size_t from = (number * ranks + part->rows - 1) / part->rows;
	size_t to = ((number + 1) * ranks + part->rows - 1) / part->rows;

	for (size_t i = from; i < to; i++)
		step_map_row(rows->map, &rows->map->ranks[rows->chosen[i]], part,
			     rows->cells + number * part->columns);
}

/* The numbers of the ranks of the part. */
static uint32_t *step_map_ranks_of(const struct step_map *map, const struct step_map_part *part)
{
	uint32_t *chosen = calloc(part->end_rank - part->first_rank + 1, sizeof(*chosen));
	size_t at = 0, count = 0;

	for (size_t i = 0; i < map->rank_count && chosen; i++) {
		if (!rank_set_has(&part->ranks, map->ranks[i].rank))
			continue;
		if (at >= part->first_rank && at < part->end_rank)
			chosen[count++] = (uint32_t)i;
		at++;
	}
	return chosen;
}

int step_map_cells(const struct step_map *map, struct step_map_part *part, signed char **out)
{
	struct step_map_rows rows = { .map = map, .part = part };
	uint32_t *chosen;

	step_map_cut(map, step_map_chosen(map, &part->ranks), part);
	chosen = step_map_ranks_of(map, part);
	*out = malloc(part->columns * part->rows + 1);
	if (!*out || !chosen || map->median_count < (size_t)(map->end - map->first)) {
		free(*out);
		free(chosen);
		*out = NULL;
		return -ENOMEM;
	}
	memset(*out, STEP_MAP_NONE, part->columns * part->rows);
	rows.chosen = chosen;
	rows.cells = *out;
	if (part->columns)
		parallel_each(part->rows, step_map_one_row, &rows);
	free(chosen);
	return 0;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

struct step_map_worst {
	const struct step_map_rank *rank;
	int64_t step;
	float distance;
};

static void step_map_seek(const struct step_map *map, const struct step_map_part *part,
			  const struct step_map_rank *rank, struct step_map_worst *worst)
{
	for (int64_t step = part->from; step < part->to; step++) {
		const struct step_map_step *at = step_map_at(rank, step);
		float distance = at ? step_map_distance(map, at, step, part->of) : NAN;

		if (!isnan(distance) && (!worst->rank || fabsf(distance) > fabsf(worst->distance)))
			*worst = (struct step_map_worst){ rank, step, distance };
	}
}

static void step_map_worst_json(const struct step_map *map, const struct step_map_worst *worst,
				struct buf *out)
{
	const struct step_map_step *step = step_map_at(worst->rank, worst->step);
	size_t at = (size_t)(worst->step - map->first);

	buf_print(out,
		  ",\"worst\":{\"rank\":%d,\"step\":%" PRId64 ",\"start_ns\":%" PRId64
		  ",\"duration_ns\":%.0f,\"median_ns\":%.0f",
		  worst->rank->rank, worst->step, step->start_ns, (double)step->duration_ns,
		  (double)map->median_ns[at]);
	if (step->wait_ns >= 0 && map->median_wait_ns[at] >= 0)
		buf_print(out, ",\"wait_ns\":%.0f,\"median_wait_ns\":%.0f}", (double)step->wait_ns,
			  (double)map->median_wait_ns[at]);
	else
		buf_text(out, ",\"wait_ns\":null,\"median_wait_ns\":null}");
}

void step_map_json(const struct step_map *map, const struct step_map_part *part, struct buf *out)
{
	struct step_map_worst worst = { NULL, 0, 0 };
	bool first = true;
	size_t at = 0;

	buf_print(out,
		  "\"first\":%" PRId64 ",\"end\":%" PRId64 ",\"from\":%" PRId64 ",\"to\":%" PRId64
		  ",\"columns\":%zu,\"rows\":%zu,\"first_rank\":%zu,\"end_rank\":%zu"
		  ",\"of\":\"%s\",\"waits\":%s,\"hidden\":%" PRIu64 ",\"ranks\":[",
		  map->first, map->end, part->from, part->to, part->columns, part->rows,
		  part->first_rank, part->end_rank, part->of == STEP_MAP_WAIT ? "wait" : "duration",
		  map->waits ? "true" : "false", map->hidden);
	for (size_t i = 0; i < map->rank_count; i++) {
		if (!rank_set_has(&part->ranks, map->ranks[i].rank))
			continue;
		buf_print(out, "%s%d", first ? "" : ",", map->ranks[i].rank);
		first = false;
		if (at >= part->first_rank && at < part->end_rank &&
		    part->columns * part->rows == 1)
			step_map_seek(map, part, &map->ranks[i], &worst);
		at++;
	}
	buf_char(out, ']');
	if (worst.rank)
		step_map_worst_json(map, &worst, out);
}
