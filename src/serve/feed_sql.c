#include "serve/feed_sql.h"

#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"
#include "serve_sql.h"
#include "views/query/rows.h"
#include "views/timeline/zone_rows.h"

#define SQL_MEMORY_BYTES (UINT64_C(512) << 20)

static const char streams_sql[] =
	"SELECT sum(emitted), sum(kept), sum(overwritten), sum(dropped) FROM kymo.streams";

struct taking {
	struct feed *feed;
	struct zone_rows reader;
	bool open;
};

static int feed_sql_take_open(struct feed *feed, const struct feed_open *open)
{
	if (!grow_short((void **)&feed->open, feed->open_count, sizeof(*feed->open)))
		return -ENOMEM;
	feed->open[feed->open_count++] = *open;
	return 0;
}

static int take_row(const struct rows *rows, void *context)
{
	struct taking *taking = context;
	struct zone_rows_zone zone;
	int rc = zone_rows_read(&taking->reader, rows, &zone);

	if (rc <= 0)
		return rc;
	if (taking->open)
		return feed_sql_take_open(taking->feed,
					  &(struct feed_open){ .lane = zone.lane,
							       .row = zone.row,
							       .name = zone.name,
							       .start_ns = zone.start_ns });
	return zone_model_add(&taking->feed->model, zone.lane, zone.row, (uint64_t)zone.start_ns,
			      (uint64_t)zone.duration_ns, zone.name);
}

static int take_run(const struct rows *rows, void *context)
{
	struct feed *feed = context;

	free(feed->command);
	feed->command = rows_take_text(rows, 0);
	feed->now_ns = (int64_t)rows_number(rows, 1, 0);
	feed->rank = (int32_t)rows_number(rows, 2, -1);
	feed->ranks = (int32_t)rows_number(rows, 3, -1);
	feed->steps = (int64_t)rows_number(rows, 4, 0);
	return 0;
}

static int take_streams(const struct rows *rows, void *context)
{
	struct feed *feed = context;

	feed->rows = (struct feed_rows){ .emitted = rows_count(rows, 0),
					 .kept = rows_count(rows, 1),
					 .overwritten = rows_count(rows, 2),
					 .dropped = rows_count(rows, 3) };
	return 0;
}

static int feed_sql_begin(struct taking *taking, struct feed *feed)
{
	int64_t clock = zone_model_clock_ns(&feed->model);

	*taking = (struct taking){
		.feed = feed,
		.reader = { .model = &feed->model, .clock = (uint32_t)clock, .by_name = true }
	};
	return clock < 0 ? -ENOMEM : 0;
}

int feed_sql_all(struct feed *feed, const char *path, struct kymo_error *err)
{
	struct tables_options options = { .memory_limit_bytes = SQL_MEMORY_BYTES };
	struct tables *tables = NULL;
	struct taking taking;
	int rc = feed_sql_begin(&taking, feed);

	if (!rc)
		rc = tables_open(path, &options, &tables, err);
	if (!rc)
		rc = rows_each(tables, sql_feed_zones, take_row, &taking, err);
	if (!rc)
		rc = rows_each(tables, sql_feed_ops, take_row, &taking, err);
	taking.open = true;
	if (!rc)
		rc = rows_each(tables, sql_feed_open, take_row, &taking, err);
	if (!rc)
		rc = rows_each(tables, sql_feed_run, take_run, feed, err);
	if (!rc)
		rc = rows_each(tables, streams_sql, take_streams, feed, err);
	tables_close(tables);
	return rc;
}

void feed_sql_devices(struct feed *feed, const char *path)
{
	struct tables_options options = { .memory_limit_bytes = SQL_MEMORY_BYTES };
	struct tables *tables = NULL;
	struct taking taking;
	struct kymo_error err;

	if (feed_sql_begin(&taking, feed) || tables_open(path, &options, &tables, &err))
		return;
	zone_model_clear(&feed->model, ZONE_MODEL_QUEUE);
	rows_each(tables, sql_feed_ops, take_row, &taking, &err);
	tables_close(tables);
}
