#include "views/timeline/zoneset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "views/report/devices.h"

/* Clocks are read in ticks and told in ns: neighbours may overlap by a rounding. */
#define ROUNDING_NS 64

/* pid, tid, depth, start_ns, duration_ns, source, name, file, line, thread, rank. What was open at
   the end is shown up to the end. Operations of devices are lanes of their own, by queue. */
static const char *const queries[] = {
	"SELECT pid, tid, depth, start_ns, duration_ns, source, name, file, line, thread, rank "
	"FROM trace.zones",
	"SELECT pid, tid, depth, start_ns, greatest(coalesce(age_ns, (SELECT max(duration_ns) FROM "
	"kymo.runs) - start_ns), 1000), source, "
	"name, file, line, thread, rank FROM trace.open_zones",
	DEVICES_LANES_SQL,
};

/* ---- lanes ---------------------------------------------------------------------------------- */

static void zoneset_copy_text(char *out, size_t room, const struct tables_cell *cell)
{
	size_t bytes = cell->text_bytes < room - 1 ? cell->text_bytes : room - 1;

	memcpy(out, cell->text ? cell->text : "", bytes);
	out[bytes] = '\0';
}

/* Lanes are few, and rows of a thread come together: the last one is nearly always right. */
static int64_t find_lane(struct zoneset *set, int32_t pid, int32_t tid,
			 const struct tables_cell *thread, const struct tables_cell *rank,
			 size_t *last)
{
	char name[64];
	struct zoneset_lane *lane;

	zoneset_copy_text(name, sizeof(name), thread);
	for (size_t i = 0; i < set->lane_count; i++) {
		size_t at = (*last + i) % set->lane_count;

		lane = &set->lanes[at];
		if (lane->pid == pid && lane->tid == tid &&
		    (tid >= 0 || !strcmp(lane->name, name))) {
			*last = at;
			return (int64_t)at;
		}
	}
	/* Threads by the ten thousand: the later ones are not shown, and counted. */
	if (set->lane_count == UINT16_MAX)
		return -ENOSPC;
	if (!grow((void **)&set->lanes, &set->lane_room, set->lane_count, sizeof(*lane)))
		return -ENOMEM;
	lane = &set->lanes[set->lane_count];
	*lane = (struct zoneset_lane){ .pid = pid,
				       .tid = tid,
				       .queue = tid < 0,
				       .rank = rank->kind == TABLES_NULL ? -1
									 : (int32_t)rank->integer };
	memcpy(lane->name, name, sizeof(name));
	*last = set->lane_count;
	return (int64_t)set->lane_count++;
}

/* ---- rows of the queries -------------------------------------------------------------------- */

static const struct tables_cell *as_text(struct tables_cell *cell)
{
	if (!cell->text)
		cell->text = "";
	return cell;
}

static int zoneset_add_zone(struct zoneset *set, struct tables_result *result, size_t row,
			    size_t *last)
{
	struct tables_cell cells[11];
	struct zonenames_key key;
	struct zoneset_zone *zone;
	char source[8];
	int64_t lane, name, start, duration;

	for (size_t i = 0; i < 11; i++)
		tables_cell(result, i, row, &cells[i]);
	start = cells[3].integer > 0 ? cells[3].integer : 0;
	duration = cells[4].integer;
	if (cells[3].kind == TABLES_NULL || duration < 0 || duration > INT64_MAX / 4 ||
	    start > INT64_MAX / 4)
		return 0;
	zoneset_copy_text(source, sizeof(source), as_text(&cells[5]));
	key = (struct zonenames_key){ .name = as_text(&cells[6])->text,
				      .name_bytes = cells[6].text_bytes,
				      .file = as_text(&cells[7])->text,
				      .file_bytes = cells[7].text_bytes,
				      .source = source,
				      .line = (int32_t)cells[8].integer };
	lane = find_lane(set, (int32_t)cells[0].integer, (int32_t)cells[1].integer,
			 as_text(&cells[9]), &cells[10], last);
	set->hidden += lane == -ENOSPC;
	if (lane == -ENOSPC)
		return 0;
	name = lane < 0 ? lane : zonenames_find(&set->names, &key, ZONESET_NAMES);
	if (name < 0 || !grow((void **)&set->zones, &set->room, set->count, sizeof(*zone)))
		return -ENOMEM;
	zone = &set->zones[set->count++];
	*zone = (struct zoneset_zone){ .start_ns = start,
				       .duration_ns = duration,
				       .name = (uint32_t)name,
				       .lane = (uint16_t)lane,
				       .row = (uint16_t)(cells[2].integer < ZONESET_ROWS
								 ? cells[2].integer
								 : ZONESET_ROWS - 1) };
	set->lanes[lane].count++;
	return 0;
}

static int run_query(struct tables *tables, const char *sql, struct zoneset *set,
		     struct kymo_error *err)
{
	struct tables_result *result = NULL;
	int64_t rows = 0;
	size_t last = 0;
	int rc = tables_query(tables, sql, &result, err);

	while (!rc && (rows = tables_next(result, err)) > 0)
		for (size_t row = 0; row < (size_t)rows && !rc; row++)
			rc = zoneset_add_zone(set, result, row, &last);
	tables_result_close(result);
	if (rc == -ENOMEM)
		return error_set(err, ENOMEM, "out of memory after %zu zones", set->count);
	return rc ? rc : rows < 0 ? (int)rows : 0;
}

/* ---- layout --------------------------------------------------------------------------------- */

/* The main thread of each process first, then by the number of zones; queues last. */
static int zoneset_by_importance(const void *a, const void *b)
{
	const struct zoneset_lane *const *left = a, *const *right = b, *x = *left, *y = *right;
	bool x_main = x->pid == x->tid, y_main = y->pid == y->tid;

	if (x->queue != y->queue)
		return x->queue - y->queue;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x_main != y_main)
		return y_main - x_main;
	return x->count < y->count ? 1 : x->count > y->count ? -1 : x < y ? -1 : x > y;
}

/* Keeps ZONESET_LANES lanes, in order of importance. */
static int choose_lanes(struct zoneset *set)
{
	struct zoneset_lane **order = calloc(set->lane_count + 1, sizeof(struct zoneset_lane *));
	struct zoneset_lane *lanes = calloc(set->lane_count + 1, sizeof(*lanes));
	uint16_t *place = calloc(set->lane_count + 1, sizeof(*place));
	size_t kept = 0;

	for (size_t i = 0; order && i < set->lane_count; i++)
		order[i] = &set->lanes[i];
	if (order && lanes && place) {
		qsort(order, set->lane_count, sizeof(order[0]), zoneset_by_importance);
		for (size_t i = 0; i < set->lane_count; i++) {
			lanes[i] = *order[i];
			place[order[i] - set->lanes] = (uint16_t)i;
		}
		for (size_t i = 0; i < set->count; i++) {
			struct zoneset_zone zone = set->zones[i];

			zone.lane = place[zone.lane];
			if (zone.lane < ZONESET_LANES)
				set->zones[kept++] = zone;
		}
		set->hidden += set->count - kept;
		set->count = kept;
		if (set->lane_count > ZONESET_LANES)
			set->lane_count = ZONESET_LANES;
		free(set->lanes);
		set->lanes = lanes;
		lanes = NULL;
	}
	kept = order && place && !lanes;
	free(order);
	free(lanes);
	free(place);
	return kept ? 0 : -ENOMEM;
}

static int by_start(const void *a, const void *b)
{
	const struct zoneset_zone *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* A zone that overlaps the one before it in its row goes to the first free row below. */
static size_t place_rows(struct zoneset *set)
{
	int64_t ends[ZONESET_ROWS];
	size_t kept = 0;
	uint32_t lane = UINT32_MAX;

	for (size_t i = 0; i < set->count; i++) {
		struct zoneset_zone zone = set->zones[i];
		size_t row = zone.row;

		if (zone.lane != lane)
			memset(ends, 0, sizeof(ends));
		lane = zone.lane;
		while (row < ZONESET_ROWS && ends[row] > zone.start_ns + ROUNDING_NS)
			row++;
		if (row == ZONESET_ROWS) {
			set->hidden++;
			continue;
		}
		if (ends[row] > zone.start_ns) {
			int64_t late = ends[row] - zone.start_ns;

			zone.start_ns += late;
			zone.duration_ns -= late < zone.duration_ns ? late : zone.duration_ns;
		}
		zone.row = (uint16_t)row;
		ends[row] = zone.start_ns + zone.duration_ns;
		set->end_ns = ends[row] > set->end_ns ? ends[row] : set->end_ns;
		if (set->lanes[lane].rows <= row)
			set->lanes[lane].rows = (uint32_t)row + 1;
		set->zones[kept++] = zone;
	}
	return kept;
}

/* From the order by lane and start to that by lane, row and start: a counting sort, which keeps the
   order. */
static int split_tracks(struct zoneset *set)
{
	size_t most = set->lane_count * ZONESET_ROWS, at = 0;
	size_t *firsts = calloc(most + 1, sizeof(*firsts));
	struct zoneset_zone *sorted = malloc((set->count + 1) * sizeof(*sorted));

	set->tracks = calloc(most + 1, sizeof(*set->tracks));
	if (!firsts || !sorted || !set->tracks) {
		free(firsts);
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < set->count; i++)
		firsts[set->zones[i].lane * ZONESET_ROWS + set->zones[i].row]++;
	for (size_t i = 0; i < most; i++) {
		size_t count = firsts[i];

		firsts[i] = at;
		if (count)
			set->tracks[set->track_count++] = (struct zoneset_track){
				.lane = (uint16_t)(i / ZONESET_ROWS),
				.row = (uint16_t)(i % ZONESET_ROWS),
				.first = at,
				.count = count
			};
		at += count;
	}
	for (size_t i = 0; i < set->count; i++)
		sorted[firsts[set->zones[i].lane * ZONESET_ROWS + set->zones[i].row]++] =
			set->zones[i];
	free(firsts);
	free(set->zones);
	set->zones = sorted;
	return 0;
}

int zoneset_gather(struct tables *tables, struct zoneset *out, struct kymo_error *err)
{
	int rc = 0;

	*out = (struct zoneset){ 0 };
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]) && !rc; i++)
		rc = run_query(tables, queries[i], out, err);
	if (!rc && choose_lanes(out))
		rc = error_set(err, ENOMEM, "out of memory for %zu zones", out->count);
	if (rc)
		return rc;
	if (out->count)
		qsort(out->zones, out->count, sizeof(out->zones[0]), by_start);
	out->count = place_rows(out);
	if (split_tracks(out))
		return error_set(err, ENOMEM, "out of memory for %zu zones", out->count);
	return 0;
}

void zoneset_fini(struct zoneset *set)
{
	free(set->zones);
	free(set->lanes);
	free(set->tracks);
	zonenames_fini(&set->names);
	*set = (struct zoneset){ 0 };
}
