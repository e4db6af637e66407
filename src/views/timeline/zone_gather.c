#include "views/timeline/zone_gather.h"

#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"
#include "views_sql.h"
#include "views/timeline/sampled_zones.h"
#include "views/timeline/zone_rows.h"

/* Ticks are converted to ns one by one, so neighbours may overlap by rounding. */
#define ROUNDING_NS 64
#define NAMES_MOST 65536

/* The columns of zone_rows.h. A zone that was still open lasts until the end of the recording. */
static const char *const queries[] = {
	sql_gather_zones,
	sql_gather_open,
	sql_gather_ops,
	sql_gather_collectives,
};

/* Zones as they come from SQL, in no order. */
struct staged {
	struct zone_rows reader;
	struct zone_rows_zone *zones;
	size_t count, room;
};

static int zone_gather_row(const struct rows *rows, void *context)
{
	struct staged *staged = context;
	struct zone_rows_zone zone;
	int rc = zone_rows_read(&staged->reader, rows, &zone);

	if (rc <= 0)
		return rc;
	if (!grow((void **)&staged->zones, &staged->room, staged->count, sizeof(zone)))
		return -ENOMEM;
	staged->zones[staged->count++] = zone;
	staged->reader.model->lanes[zone.lane].count++;
	return 0;
}

/* The lanes to show become the model's lanes. places[]: the new index of each lane. */
static void zone_gather_move_lanes(struct zone_model *model, const uint32_t *order, size_t shown,
				   struct zone_model_lane *lanes, uint16_t *places)
{
	for (size_t i = 0; i < model->lane_count; i++) {
		places[order[i]] = (uint16_t)i;
		lanes[i] = model->lanes[order[i]];
		lanes[i].count = 0;
	}
	free(model->lanes);
	model->lanes = lanes;
	model->lane_room = model->lane_count + 1;
	model->lane_count = shown;
}

static void zone_gather_keep(struct staged *staged, const uint16_t *places)
{
	size_t kept = 0;

	for (size_t i = 0; i < staged->count; i++) {
		struct zone_rows_zone zone = staged->zones[i];

		zone.lane = places[zone.lane];
		if (zone.lane < ZONE_MODEL_LANES_SHOWN)
			staged->zones[kept++] = zone;
	}
	staged->reader.model->hidden += staged->count - kept;
	staged->count = kept;
}

static int zone_gather_choose_lanes(struct staged *staged)
{
	struct zone_model *model = staged->reader.model;
	size_t shown = 0;
	uint32_t *order = zone_model_order(model, NULL, &shown, NULL);
	struct zone_model_lane *lanes = calloc(model->lane_count + 1, sizeof(*lanes));
	uint16_t *places = calloc(model->lane_count + 1, sizeof(*places));
	int rc = order && lanes && places ? 0 : -ENOMEM;

	if (!rc) {
		zone_gather_move_lanes(model, order, shown, lanes, places);
		zone_gather_keep(staged, places);
		lanes = NULL;
	}
	free(order);
	free(lanes);
	free(places);
	return rc;
}

/* Whether the zones of each row come in order and do not overlap, as they do unless DuckDB read
   parts of a stream out of turn. Then they need not be sorted. */
static bool zone_gather_in_order(const struct staged *staged)
{
	int64_t(*ends)[ZONE_MODEL_ROWS] = calloc(ZONE_MODEL_LANES_SHOWN, sizeof(*ends));
	bool in_order = ends;

	for (size_t i = 0; i < staged->count && in_order; i++) {
		const struct zone_rows_zone *zone = &staged->zones[i];
		int64_t *end = &ends[zone->lane][zone->row];

		in_order = zone->start_ns >= *end;
		*end = zone->start_ns + zone->duration_ns;
	}
	free(ends);
	return in_order;
}

static int zone_gather_by_start(const void *a, const void *b)
{
	const struct zone_rows_zone *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static int zone_gather_add(const struct staged *staged)
{
	int rc = 0;

	if (staged->count && !zone_gather_in_order(staged))
		qsort(staged->zones, staged->count, sizeof(staged->zones[0]), zone_gather_by_start);
	for (size_t i = 0; i < staged->count && !rc; i++) {
		const struct zone_rows_zone *zone = &staged->zones[i];

		rc = zone_model_add(staged->reader.model, zone->lane, zone->row,
				    (uint64_t)zone->start_ns, (uint64_t)zone->duration_ns,
				    zone->name);
	}
	return rc;
}

/* Samples come first, since their names of threads are those that Python has for them. */
static int zone_gather_samples(struct tables *tables, struct staged *staged, struct kymo_error *err)
{
	int rc = 0;

	if (sampled_zones_wanted(tables))
		rc = rows_each(tables, sampled_zones_sql(), zone_gather_row, staged, err);
	staged->reader.model->sampled = staged->count;
	return rc;
}

bool zone_gather_has_critical(struct tables *tables)
{
	return tables_number(tables, sql_has_critical, 0) > 0;
}

int zone_gather(struct tables *tables, struct zone_model *out, struct kymo_error *err)
{
	struct staged staged = { .reader.model = out };
	int rc;

	*out = (struct zone_model){ .names.most = NAMES_MOST, .rounding_ticks = ROUNDING_NS };
	rc = zone_model_clock_ns(out) < 0 ? -ENOMEM : 0;
	if (!rc)
		rc = zone_gather_samples(tables, &staged, err);
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]) && !rc; i++)
		rc = rows_each(tables, queries[i], zone_gather_row, &staged, err);
	if (!rc && zone_gather_has_critical(tables))
		rc = rows_each(tables, sql_gather_critical, zone_gather_row, &staged, err);
	if (!rc)
		rc = zone_gather_choose_lanes(&staged);
	if (!rc)
		rc = zone_gather_add(&staged);
	if (rc == -ENOMEM)
		error_set(err, ENOMEM, "out of memory for %zu zones", staged.count);
	free(staged.zones);
	return rc;
}
