#include "tables/scan/scan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schema.h"
#include "tables/scan/decode.h"
#include "tables/scan/dictionary.h"
#include "tables/scan/table_function.h"
#include "tables/words.h"

#define UNIT_ROWS 122880u /* rows that a thread takes at once: DuckDB's own number */
#define BLOCK_BYTES (256u << 10) /* of rows read at once: fits the L2 cache */

/* The part of a table that the named parameters select. */
struct scan_range {
	bool any;
	int64_t from_ns, to_ns; /* [from, to): the time of a row, or any part of its duration */
	int64_t step_from, step_to; /* [from, to) */
	int32_t time, duration, step; /* declared columns; -1 if the table has none */
};

struct scan_bind {
	struct tables *tables;
	const struct table_shape *shape;
	struct scan_range range;
};

struct scan_unit {
	const struct table_shape_stream *stream;
	const struct store_chunk *chunk;
	uint64_t at, rows;
};

/* One execution, shared by its threads. */
struct scan_run {
	struct scan_bind *bind;
	const struct table_shape_column *
		*columns; /* requested columns; NULL for no stored column (count(*)) */
	size_t column_count;
	struct scan_unit *units;
	size_t unit_count;
	size_t next_unit; /* atomic */
};

/* One thread of it. */
struct scan_lane {
	struct scan_unit unit; /* rows not yet read */
	unsigned char *buffer;
	duckdb_selection_vector *selections;
};

size_t scan_thread_count(const struct recording *recording)
{
	return recording->thread_count + recording->process_count;
}

/* ---- bind -------------------------------------------------------------------------------- */

static bool take_parameter(duckdb_bind_info info, const char *name, int64_t *out)
{
	duckdb_value value = duck.bind_get_named_parameter(info, name);
	bool given = value && !duck.is_null_value(value);

	if (given)
		*out = duck.get_int64(value);
	if (value)
		duck.destroy_value(&value);
	return given;
}

static int32_t first_declared(const struct table_shape *shape, uint32_t type)
{
	for (size_t i = 0; i < shape->declared_count; i++)
		if (shape->declared[i].type == type)
			return (int32_t)i;
	return -1;
}

static int32_t step_column(const struct table_shape *shape)
{
	for (size_t i = 0; i < shape->declared_count; i++)
		if (shape->declared[i].type == KYMO_U32 && !strcmp(shape->declared[i].name, "step"))
			return (int32_t)i;
	return -1;
}

static const char *take_range(duckdb_bind_info info, const struct table_shape *shape,
			      struct scan_range *range)
{
	bool times, steps;

	*range = (struct scan_range){
		false, INT64_MIN, INT64_MAX, INT64_MIN, INT64_MAX, -1, -1, -1
	};
	times = take_parameter(info, "from_ns", &range->from_ns);
	times |= take_parameter(info, "to_ns", &range->to_ns);
	steps = take_parameter(info, "step_from", &range->step_from);
	steps |= take_parameter(info, "step_to", &range->step_to);
	range->any = times || steps;
	if (times) {
		range->time = first_declared(shape, KYMO_TIME);
		range->duration = first_declared(shape, KYMO_DURATION);
		if (range->time < 0)
			return "has no time column, so from_ns and to_ns cannot be used";
	}
	if (steps) {
		range->step = step_column(shape);
		if (range->step < 0)
			return "has no column step, so step_from and step_to cannot be used";
	}
	return NULL;
}

static void scan_add_columns(duckdb_bind_info info, const struct table_shape *shape)
{
	duckdb_logical_type type;

	for (size_t i = 0; i < shape->column_count; i++) {
		type = duck.create_logical_type(decode_type(shape->columns[i].kind));
		duck.bind_add_result_column(info, shape->columns[i].name, type);
		duck.destroy_logical_type(&type);
	}
}

static void bind_failed(duckdb_bind_info info, const char *table, const char *why)
{
	char text[512], name[132];

	snprintf(name, sizeof(name), "%s", *table ? table : "''");
	words_trim(name);
	snprintf(text, sizeof(text), "kymo_scan: %s %s", name, why);
	duck.bind_set_error(info, text);
}

static void bind_table(duckdb_bind_info info, struct tables *tables, const char *table)
{
	const struct table_shape *shape = table_shape_find(&tables->shapes, table);
	struct scan_bind *bind;
	const char *wrong;

	if (!shape) {
		bind_failed(info, table,
			    "is not a table of this recording; FROM kymo.streams lists the "
			    "recorded tables");
		return;
	}
	bind = calloc(1, sizeof(*bind));
	wrong = bind ? take_range(info, shape, &bind->range) : "cannot be read: no memory";
	if (wrong) {
		free(bind);
		bind_failed(info, table, wrong);
		return;
	}
	bind->tables = tables;
	bind->shape = shape;
	scan_add_columns(info, shape);
	duck.bind_set_cardinality(info, shape->rows, !bind->range.any);
	duck.bind_set_bind_data(info, bind, free);
}

static void scan_bind(duckdb_bind_info info)
{
	char *table = table_function_text(info, 0);

	bind_table(info, duck.bind_get_extra_info(info), table ? table : "NULL");
	if (table)
		duck.free(table);
}

/* ---- init -------------------------------------------------------------------------------- */

static size_t count_units(const struct table_shape *shape)
{
	size_t count = 0;

	for (size_t s = 0; s < shape->stream_count; s++)
		for (size_t c = 0; c < shape->streams[s].stream->chunk_count; c++)
			count += shape->streams[s].stream->chunks[c].rows / UNIT_ROWS + 1;
	return count;
}

static void cut_chunk(struct scan_run *run, const struct table_shape_stream *stream,
		      const struct store_chunk *chunk)
{
	for (uint64_t at = 0; at < chunk->rows; at += UNIT_ROWS) {
		struct scan_unit *unit = &run->units[run->unit_count++];

		unit->stream = stream;
		unit->chunk = chunk;
		unit->at = at;
		unit->rows = chunk->rows - at < UNIT_ROWS ? chunk->rows - at : UNIT_ROWS;
	}
}

static bool cut_units(struct scan_run *run, const struct table_shape *shape)
{
	run->units = calloc(count_units(shape) + 1, sizeof(run->units[0]));
	if (!run->units)
		return false;
	for (size_t s = 0; s < shape->stream_count; s++)
		for (size_t c = 0; c < shape->streams[s].stream->chunk_count; c++)
			cut_chunk(run, &shape->streams[s], &shape->streams[s].stream->chunks[c]);
	return true;
}

static bool take_columns(struct scan_run *run, duckdb_init_info info)
{
	const struct table_shape *shape = run->bind->shape;
	idx_t index;

	run->column_count = duck.init_get_column_count(info);
	run->columns = calloc(run->column_count + 1, sizeof(run->columns[0]));
	if (!run->columns)
		return false;
	for (size_t i = 0; i < run->column_count; i++) {
		index = duck.init_get_column_index(info, i);
		if (index < shape->column_count)
			run->columns[i] = &shape->columns[index];
	}
	return true;
}

static void scan_run_destroy(void *data)
{
	struct scan_run *run = data;

	if (!run)
		return;
	free(run->units);
	free(run->columns);
	free(run);
}

static void scan_init(duckdb_init_info info)
{
	struct scan_run *run = calloc(1, sizeof(*run));
	size_t threads;

	if (run)
		run->bind = duck.init_get_bind_data(info);
	if (!run || !take_columns(run, info) || !cut_units(run, run->bind->shape)) {
		scan_run_destroy(run);
		duck.init_set_error(info, "kymo_scan: no memory");
		return;
	}
	threads = run->unit_count < 64 ? run->unit_count : 64;
	duck.init_set_max_threads(info, threads ? threads : 1);
	duck.init_set_init_data(info, run, scan_run_destroy);
}

static void lane_destroy(void *data)
{
	struct scan_lane *lane = data;

	if (!lane)
		return;
	free(lane->buffer);
	free(lane->selections);
	free(lane);
}

static void scan_lane_init(duckdb_init_info info)
{
	const struct scan_bind *bind = duck.init_get_bind_data(info);
	struct scan_lane *lane = calloc(1, sizeof(*lane));

	if (lane) {
		lane->buffer = malloc(BLOCK_BYTES);
		lane->selections = calloc(bind->shape->declared_count + 1,
					  sizeof(lane->selections[0]));
	}
	if (!lane || !lane->buffer || !lane->selections) {
		lane_destroy(lane);
		duck.init_set_error(info, "kymo_scan: no memory");
		return;
	}
	duck.init_set_init_data(info, lane, lane_destroy);
}

/* ---- rows -------------------------------------------------------------------------------- */

static void tell_progress(struct tables *tables, uint64_t rows)
{
	uint64_t done;

	if (!tables->progress)
		return;
	done = kymo__fetch_add_relaxed(&tables->progress_done, rows);
	/* One call at a time; a thread that finds the lock held skips its report. */
	if (pthread_mutex_trylock(&tables->progress_lock))
		return;
	/* A view that reads a stream more than once counts its rows more than once. */
	tables->progress(done < tables->progress_all ? done : tables->progress_all,
			 tables->progress_all);
	pthread_mutex_unlock(&tables->progress_lock);
}

static bool next_unit(struct scan_run *run, struct scan_lane *lane)
{
	size_t at = kymo__fetch_add_relaxed(&run->next_unit, 1);

	if (at >= run->unit_count)
		return false;
	lane->unit = run->units[at];
	tell_progress(run->bind->tables, lane->unit.rows);
	return true;
}

/* The next rows of the lane's unit; 0 at its end, or if its file was truncated. */
static size_t next_rows(struct scan_lane *lane, const unsigned char **rows)
{
	struct scan_unit *unit = &lane->unit;
	const struct store_stream *stream = unit->stream->stream;
	uint64_t count = duck.vector_size();

	if (count > BLOCK_BYTES / stream->row_bytes)
		count = BLOCK_BYTES / stream->row_bytes;
	if (count > unit->rows)
		count = unit->rows;
	*rows = lane->buffer;
	if (unit->chunk->memory)
		*rows = unit->chunk->memory + unit->at * stream->row_bytes;
	else if (count)
		count = store_read_rows(stream, unit->chunk, unit->at, count, lane->buffer);
	unit->at += count;
	unit->rows = count ? unit->rows - count : 0;
	return count;
}

static const unsigned char *cell(const struct table_shape_stream *stream, const unsigned char *row,
				 int32_t declared)
{
	int32_t at = declared < 0 ? -1 : stream->column_of[declared];

	return at < 0 ? NULL : row + stream->stream->columns[at].offset;
}

static uint64_t scan_load(const unsigned char *at, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, at, bytes);
	return value;
}

/* NULL (a stream without the column) is outside every range, as in SQL. */
static bool in_range(const struct scan_range *range, const struct table_shape_stream *stream,
		     const unsigned char *row)
{
	const struct store_clock *clock = &stream->process->clock;
	const unsigned char *time = cell(stream, row, range->time);
	const unsigned char *duration = cell(stream, row, range->duration);
	const unsigned char *step = cell(stream, row, range->step);
	int64_t start_ns, span_ns, number;

	if (range->time >= 0) {
		if (!time)
			return false;
		start_ns = decode_time_ns(clock, scan_load(time, 8));
		span_ns = duration ? decode_span_ns(clock, scan_load(duration, 8)) : 0;
		if (start_ns >= range->to_ns)
			return false;
		if (start_ns < range->from_ns &&
		    (uint64_t)range->from_ns - (uint64_t)start_ns >= (uint64_t)span_ns)
			return false;
	}
	if (range->step >= 0) {
		if (!step)
			return false;
		number = (int64_t)scan_load(step, 4);
		if (number < range->step_from || number >= range->step_to)
			return false;
	}
	return true;
}

/* Moves the rows in range to the buffer's start. */
static size_t filter(const struct scan_range *range, struct scan_lane *lane,
		     const unsigned char **rows, size_t count)
{
	size_t row_bytes = lane->unit.stream->stream->row_bytes, kept = 0;

	for (size_t i = 0; i < count; i++) {
		const unsigned char *row = *rows + i * row_bytes;

		if (in_range(range, lane->unit.stream, row))
			memmove(lane->buffer + kept++ * row_bytes, row, row_bytes);
	}
	*rows = lane->buffer;
	return kept;
}

static void scan_emit(struct scan_run *run, struct scan_lane *lane, const unsigned char *rows,
		      size_t count, duckdb_data_chunk output)
{
	struct decode_block block = {
		.tables = run->bind->tables,
		.shape = run->bind->shape,
		.stream = lane->unit.stream,
		.rows = rows,
		.row_bytes = lane->unit.stream->stream->row_bytes,
		.count = count,
		.selections = lane->selections,
	};

	for (size_t i = 0; i < run->column_count; i++)
		if (run->columns[i])
			decode_column(&block, run->columns[i],
				      duck.data_chunk_get_vector(output, i));
	decode_end(&block);
	duck.data_chunk_set_size(output, count);
}

static void scan_function(duckdb_function_info info, duckdb_data_chunk output)
{
	struct scan_run *run = duck.function_get_init_data(info);
	struct scan_lane *lane = duck.function_get_local_init_data(info);
	const struct scan_range *range = &run->bind->range;
	const unsigned char *rows;
	size_t count;

	do {
		count = lane->unit.rows ? next_rows(lane, &rows) : 0;
		if (count && range->any)
			count = filter(range, lane, &rows, count);
		if (count) {
			scan_emit(run, lane, rows, count, output);
			return;
		}
	} while (lane->unit.rows || next_unit(run, lane));
	duck.data_chunk_set_size(output, 0);
}

/* ---- registration ------------------------------------------------------------------------ */

static void add_parameters(duckdb_table_function function)
{
	static const char *const named[] = { "from_ns", "to_ns", "step_from", "step_to" };
	duckdb_logical_type text = duck.create_logical_type(DUCKDB_TYPE_VARCHAR);
	duckdb_logical_type number = duck.create_logical_type(DUCKDB_TYPE_BIGINT);

	duck.table_function_add_parameter(function, text);
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		duck.table_function_add_named_parameter(function, named[i], number);
	duck.destroy_logical_type(&text);
	duck.destroy_logical_type(&number);
}

int scan_register(struct tables *tables, duckdb_connection connection, struct kymo_error *err)
{
	const struct table_function function = { .name = "kymo_scan",
						 .extra = tables,
						 .bind = scan_bind,
						 .init = scan_init,
						 .init_thread = scan_lane_init,
						 .emit = scan_function,
						 .some_columns = true };
	duckdb_table_function made = duck.create_table_function();

	add_parameters(made);
	return table_function_register(connection, made, &function, err);
}
