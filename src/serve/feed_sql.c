#include "serve/feed_sql.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "views/report/devices.h"
#include "views/query/rows.h"

#define SQL_MEMORY_BYTES (UINT64_C(512) << 20)

/* pid, tid, depth, start_ns, duration_ns, source, name, file, line, thread, rank; in the order of
   their start. */
static const char zones_sql[] = "SELECT pid, tid, depth, start_ns, duration_ns, source, name, "
				"file, line, thread, rank FROM trace.zones "
				"WHERE duration_ns >= 0";
static const char ops_sql[] = DEVICES_LANES_SQL " ORDER BY start_ns";
static const char open_sql[] = "SELECT pid, tid, depth, start_ns, 0, source, name, file, line, "
			       "thread, rank FROM trace.open_zones";
static const char run_sql[] = "SELECT command, duration_ns, (SELECT min(rank) FROM kymo.processes "
			      "WHERE role = 'target'), (SELECT max(ranks) "
			      "FROM kymo.processes WHERE role = 'target'), (SELECT count(*) FROM "
			      "trace.steps) FROM kymo.runs";
static const char streams_sql[] =
	"SELECT sum(emitted), sum(kept), sum(overwritten), sum(dropped) FROM kymo.streams";

struct taking {
	struct feed *feed;
	uint32_t clock;
	size_t last; /* lane */
	bool open;
};

static struct tables_cell cell_of(const struct rows *rows, size_t column)
{
	struct tables_cell cell = { 0 };

	tables_cell(rows->result, column, rows->row, &cell);
	if (!cell.text) {
		cell.text = "";
		cell.text_bytes = 0;
	}
	return cell;
}

/* Rows of a thread come together: the last one is nearly always right. */
static int64_t feed_sql_lane_of(struct taking *taking, const struct rows *rows, int32_t pid,
				int32_t tid)
{
	struct zoneindex *index = &taking->feed->index;
	struct zoneindex_lane lane = { .pid = pid,
				       .tid = tid,
				       .kind = tid < 0 ? ZONEINDEX_QUEUE : ZONEINDEX_THREAD,
				       .rank = (int32_t)rows_number(rows, 10, -1),
				       .clock = taking->clock };

	rows_copy_text(rows, 9, lane.name, sizeof(lane.name));
	for (size_t i = 0; i < index->lane_count; i++) {
		size_t at = (taking->last + i) % index->lane_count;
		const struct zoneindex_lane *one = &index->lanes[at];

		if (one->pid == pid && one->tid == tid && !strcmp(one->name, lane.name)) {
			taking->last = at;
			return (int64_t)at;
		}
	}
	taking->last = index->lane_count;
	return zoneindex_lane(index, &lane);
}

static int64_t feed_sql_name_of(struct taking *taking, const struct rows *rows)
{
	struct tables_cell name = cell_of(rows, 6), file = cell_of(rows, 7);
	char source[8];
	struct zonenames_key key = { .name = name.text,
				     .name_bytes = name.text_bytes,
				     .file = file.text,
				     .file_bytes = file.text_bytes,
				     .source = source,
				     .line = (int32_t)rows_number(rows, 8, 0) };

	rows_copy_text(rows, 5, source, sizeof(source));
	return zoneindex_name(&taking->feed->index, &key);
}

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
	double start = rows_number(rows, 3, -1), depth = rows_number(rows, 2, 0);
	int64_t lane = feed_sql_lane_of(taking, rows, (int32_t)rows_number(rows, 0, 0),
					(int32_t)rows_number(rows, 1, 0));
	int64_t name = lane < 0 ? lane : feed_sql_name_of(taking, rows);
	uint32_t row = depth >= 0 && depth < ZONEINDEX_ROWS ? (uint32_t)depth : ZONEINDEX_ROWS - 1;

	if (lane == -ENOSPC) {
		taking->feed->index.hidden++;
		return 0;
	}
	if (lane < 0 || name < 0)
		return -ENOMEM;
	start = start < 0 ? 0 : start;
	if (taking->open)
		return feed_sql_take_open(taking->feed,
					  &(struct feed_open){ .lane = (uint32_t)lane,
							       .row = row,
							       .name = (uint32_t)name,
							       .start_ns = (int64_t)start });
	return zoneindex_add(&taking->feed->index, (uint32_t)lane, row, (uint64_t)start,
			     (uint64_t)rows_number(rows, 4, 0), (uint32_t)name);
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

/* Of the two, times are ns already. */
static int feed_sql_begin(struct taking *taking, struct feed *feed)
{
	const struct store_clock clock = { .mult = UINT64_C(1) << 32 };
	int64_t at = zoneindex_clock(&feed->index, &clock);

	*taking = (struct taking){ .feed = feed, .clock = (uint32_t)at };
	return at < 0 ? -ENOMEM : 0;
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
		rc = rows_each(tables, zones_sql, take_row, &taking, err);
	if (!rc)
		rc = rows_each(tables, ops_sql, take_row, &taking, err);
	taking.open = true;
	if (!rc)
		rc = rows_each(tables, open_sql, take_row, &taking, err);
	if (!rc)
		rc = rows_each(tables, run_sql, take_run, feed, err);
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
	zoneindex_clear(&feed->index, ZONEINDEX_QUEUE);
	rows_each(tables, ops_sql, take_row, &taking, &err);
	tables_close(tables);
}
