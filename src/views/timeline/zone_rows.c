#include "views/timeline/zone_rows.h"

#include <errno.h>
#include <string.h>

enum { PID, TID, DEPTH, START, DURATION, SOURCE, NAME, FILE_NAME, LINE, THREAD, RANK, HOST };

static int64_t zone_rows_integer(const struct rows *rows, size_t column, int64_t fallback)
{
	struct tables_cell cell;

	tables_cell(rows->result, column, rows->row, &cell);
	switch (cell.kind) {
	case TABLES_NULL: return fallback;
	case TABLES_INTEGER: return cell.integer;
	default: return (int64_t)rows_number(rows, column, (double)fallback);
	}
}

static const char *zone_rows_text(const struct rows *rows, size_t column, uint32_t *bytes)
{
	struct tables_cell cell;

	tables_cell(rows->result, column, rows->row, &cell);
	*bytes = cell.kind == TABLES_TEXT ? (uint32_t)cell.text_bytes : 0;
	return *bytes ? cell.text : "";
}

/* Whether a process of that rank and host can be the lane's; those that are not known can. */
static bool zone_rows_is_place(const struct zone_model_lane *lane, const struct rows *rows)
{
	int32_t rank = (int32_t)zone_rows_integer(rows, RANK, -1);
	char host[sizeof(lane->host)];

	rows_copy_text(rows, HOST, host, sizeof(host));
	return (rank == lane->rank || rank < 0 || lane->rank < 0) &&
	       (!host[0] || !lane->host[0] || !strcmp(host, lane->host));
}

/* Ranges have the tid of the thread that began them, and a lane of their own. */
static bool zone_rows_are_ranges(const char *name)
{
	const size_t bytes = strlen(name), end = strlen(KYMO_RANGES_SUFFIX);

	return bytes >= end && !strcmp(name + bytes - end, KYMO_RANGES_SUFFIX);
}

static bool zone_rows_is_lane(const struct zone_rows *reader, const struct rows *rows,
			      const struct zone_model_lane *lane, int32_t pid, int32_t tid)
{
	char name[sizeof(lane->name)];

	if (lane->pid != pid || lane->tid != tid || !zone_rows_is_place(lane, rows) ||
	    (lane->kind == ZONE_MODEL_SAMPLES) != reader->samples)
		return false;
	rows_copy_text(rows, THREAD, name, sizeof(name));
	if (tid >= 0 && !reader->by_name && !zone_rows_are_ranges(name) &&
	    !zone_rows_are_ranges(lane->name))
		return true;
	return !strcmp(lane->name, name);
}

static enum zone_model_kind zone_rows_kind(int32_t tid)
{
	switch (tid) {
	case -2: return ZONE_MODEL_COLLECTIVES;
	case -3: return ZONE_MODEL_CRITICAL;
	default: return tid < 0 ? ZONE_MODEL_QUEUE : ZONE_MODEL_THREAD;
	}
}

static int64_t zone_rows_add_lane(struct zone_rows *reader, const struct rows *rows, int32_t pid,
				  int32_t tid)
{
	struct zone_model_lane lane = { .pid = pid,
					.tid = tid,
					.rank = (int32_t)zone_rows_integer(rows, RANK, -1),
					.kind = reader->samples ? ZONE_MODEL_SAMPLES
								: zone_rows_kind(tid),
					.clock = reader->clock };

	rows_copy_text(rows, THREAD, lane.name, sizeof(lane.name));
	if (lane.kind == ZONE_MODEL_THREAD && zone_rows_are_ranges(lane.name))
		lane.kind = ZONE_MODEL_TASK;
	rows_copy_text(rows, HOST, lane.host, sizeof(lane.host));
	reader->last_lane = reader->model->lane_count;
	return zone_model_lane(reader->model, &lane);
}

/* Stack samples of a thread may come before its zones, and have no rank. */
static void zone_rows_learn(struct zone_model_lane *lane, const struct rows *rows)
{
	if (lane->rank < 0)
		lane->rank = (int32_t)zone_rows_integer(rows, RANK, -1);
	if (!lane->host[0])
		rows_copy_text(rows, HOST, lane->host, sizeof(lane->host));
}

/* Rows of a thread mostly come together, so the search begins at the last lane. */
static int64_t zone_rows_lane(struct zone_rows *reader, const struct rows *rows)
{
	const struct zone_model *model = reader->model;
	int32_t pid = (int32_t)zone_rows_integer(rows, PID, 0);
	int32_t tid = (int32_t)zone_rows_integer(rows, TID, 0);

	for (size_t i = 0; i < model->lane_count; i++) {
		size_t at = (reader->last_lane + i) % model->lane_count;

		if (zone_rows_is_lane(reader, rows, &model->lanes[at], pid, tid)) {
			zone_rows_learn(&model->lanes[at], rows);
			reader->last_lane = at;
			return (int64_t)at;
		}
	}
	return zone_rows_add_lane(reader, rows, pid, tid);
}

static uint32_t zone_rows_name(struct zone_rows *reader, const struct rows *rows)
{
	struct name_entry name = { .line = (int32_t)zone_rows_integer(rows, LINE, 0) };

	name.name = zone_rows_text(rows, NAME, &name.name_bytes);
	name.source = zone_rows_text(rows, SOURCE, &name.source_bytes);
	name.file = zone_rows_text(rows, FILE_NAME, &name.file_bytes);
	return name_table_add(&reader->model->names, &name);
}

int zone_rows_read(struct zone_rows *reader, const struct rows *rows, struct zone_rows_zone *out)
{
	int64_t start = zone_rows_integer(rows, START, INT64_MIN), lane;
	int64_t duration = zone_rows_integer(rows, DURATION, -1);
	int64_t depth = zone_rows_integer(rows, DEPTH, 0);

	if (start == INT64_MIN || start > INT64_MAX / 4 || duration < 0 || duration > INT64_MAX / 4)
		return 0;
	lane = zone_rows_lane(reader, rows);
	reader->model->hidden += lane == -ENOSPC;
	if (lane < 0)
		return lane == -ENOSPC ? 0 : (int)lane;
	*out = (struct zone_rows_zone){ .start_ns = start > 0 ? start : 0,
					.duration_ns = duration,
					.name = zone_rows_name(reader, rows),
					.lane = (uint16_t)lane,
					.row = (uint16_t)(depth >= 0 && depth < ZONE_MODEL_ROWS
								  ? depth
								  : ZONE_MODEL_ROWS - 1) };
	return out->name == NAME_TABLE_NONE ? -ENOMEM : 1;
}
