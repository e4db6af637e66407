#include "views/top/top_data.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "tables/sql_fill.h"
#include "tables/tables.h"
#include "views/query/rows.h"
#include "views_sql.h"

static int top_data_run_row(const struct rows *rows, void *context)
{
	struct top_data *out = context;
	double exit_code = rows_number(rows, 3, -1);
	char state[16], signal_name[24];

	rows_copy_text(rows, 0, out->program, sizeof(out->program));
	out->pid = (int32_t)rows_number(rows, 1, 0);
	rows_copy_text(rows, 2, state, sizeof(state));
	rows_copy_text(rows, 4, signal_name, sizeof(signal_name));
	out->live = !strcmp(state, "live");
	if (signal_name[0])
		snprintf(out->end, sizeof(out->end), "killed by %s", signal_name);
	else if (exit_code >= 0)
		snprintf(out->end, sizeof(out->end), "exit %.0f", exit_code);
	else
		snprintf(out->end, sizeof(out->end), "%s", state);
	out->duration_ns = rows_number(rows, 5, 0);
	out->emitted = rows_count(rows, 6);
	out->overwritten = rows_count(rows, 7);
	out->dropped = rows_count(rows, 8);
	out->overhead_pct = rows_number(rows, 9, -1);
	out->kymo_pct = rows_number(rows, 10, -1);
	return 1;
}

static int top_steps_row(const struct rows *rows, void *context)
{
	struct top_data *out = context;

	out->steps = rows_count(rows, 0);
	out->median_ns = rows_number(rows, 1, 0);
	out->p99_ns = rows_number(rows, 2, 0);
	out->total_ns = rows_number(rows, 3, 0);
	for (size_t i = 0; i < 4; i++)
		out->phase_ns[i] = rows_number(rows, 4 + i, 0);
	out->last_step = rows_count(rows, 8);
	out->last_step_ns = rows_number(rows, 9, -1);
	out->span_ns = rows_number(rows, 10, 0);
	return 1;
}

static int top_spark_row(const struct rows *rows, void *context)
{
	struct top_data *out = context;

	if (out->spark_count < TOP_SPARK)
		out->spark_ns[out->spark_count++] = rows_number(rows, 0, -1);
	return 0;
}

static int place_row(const struct rows *rows, void *context)
{
	struct top_data *out = context;
	struct top_place *place = &out->places[out->place_count];

	if (out->place_count == TOP_PLACES)
		return 1;
	rows_copy_text(rows, 0, place->name, sizeof(place->name));
	place->self_ns = rows_number(rows, 1, 0);
	place->total_ns = rows_number(rows, 2, place->self_ns);
	place->running_ns = rows_number(rows, 3, 0);
	out->place_count++;
	return 0;
}

static int top_thread_row(const struct rows *rows, void *context)
{
	struct top_data *out = context;
	struct top_thread *thread = &out->threads[out->thread_count];

	if (out->thread_count == TOP_THREADS)
		return 1;
	thread->pid = (int32_t)rows_number(rows, 0, 0);
	thread->tid = (int32_t)rows_number(rows, 1, 0);
	rows_copy_text(rows, 2, thread->name, sizeof(thread->name));
	rows_copy_text(rows, 3, thread->doing, sizeof(thread->doing));
	rows_copy_text(rows, 4, thread->what, sizeof(thread->what));
	rows_copy_text(rows, 5, thread->place, sizeof(thread->place));
	thread->cpu_pct = rows_number(rows, 6, -1);
	out->thread_count++;
	return 0;
}

static int top_memory_row(const struct rows *rows, void *context)
{
	struct top_data *out = context;

	out->rss_bytes = rows_number(rows, 0, -1);
	out->cpu_pct = rows_number(rows, 1, -1);
	out->processes = rows_count(rows, 2);
	out->peak_bytes = rows_number(rows, 3, -1);
	return 1;
}

static int rank_row(const struct rows *rows, void *context)
{
	struct top_data *out = context;
	struct top_rank *rank = &out->ranks[out->rank_count];

	if (out->rank_count == TOP_RANKS)
		return 1;
	rank->rank = (int32_t)rows_number(rows, 0, 0);
	rank->steps = rows_count(rows, 1);
	rank->last = rows_count(rows, 2);
	out->rank_count++;
	return 0;
}

static int device_row(const struct rows *rows, void *context)
{
	struct top_data *out = context;
	struct top_device *device = &out->devices[out->device_count];

	if (out->device_count == TOP_DEVICES)
		return 1;
	rows_copy_text(rows, 0, device->name, sizeof(device->name));
	device->busy = rows_number(rows, 1, -1);
	device->used_bytes = rows_number(rows, 2, -1);
	out->device_count++;
	return 0;
}

static const struct {
	const char *sql;
	int (*each)(const struct rows *rows, void *context);
} top_queries[] = {
	{ sql_top_steps, top_steps_row },   { sql_top_spark, top_spark_row },
	{ sql_top_places, place_row },	    { sql_top_threads, top_thread_row },
	{ sql_top_memory, top_memory_row }, { sql_top_ranks, rank_row },
	{ sql_top_devices, device_row },
};

/* All queries read one moment of the recording. */
static int take_queries(struct tables *tables, struct top_data *out, struct kymo_error *err)
{
	int64_t to_ns = (int64_t)out->duration_ns, from_ns = to_ns - (int64_t)out->window_ns;
	const struct sql_value values[] = { { "from_ns", .number = from_ns },
					    { "to_ns", .number = to_ns },
					    { "window_ns", .number = (int64_t)out->window_ns },
					    { NULL } };
	struct buf sql = { 0 };
	int rc = 0;

	for (size_t i = 0; i < sizeof(top_queries) / sizeof(top_queries[0]) && rc >= 0; i++) {
		buf_reset(&sql);
		sql_fill(&sql, top_queries[i].sql, values);
		rc = rows_each(tables, buf_get(&sql), top_queries[i].each, out, err);
	}
	buf_fini(&sql);
	return rc < 0 ? rc : 0;
}

int top_data_take(const char *path, double window_ns, struct top_data *out, struct kymo_error *err)
{
	/* One thread: refreshing must not take the cores of the program. */
	struct tables_options options = { .threads = 1 };
	struct tables *tables = NULL;
	int rc;

	*out = (struct top_data){ .overhead_pct = -1,
				  .kymo_pct = -1,
				  .rss_bytes = -1,
				  .cpu_pct = -1,
				  .last_step_ns = -1,
				  .window_ns = window_ns };
	if (store_kind_is_sql(store_kind(path, NULL)))
		return error_set(err, EINVAL,
				 "%s is packed; kymo top shows running programs, kymo report this "
				 "file",
				 path);
	rc = tables_open(path, &options, &tables, err);
	if (!rc)
		rc = rows_each(tables, sql_top_run, top_data_run_row, out, err);
	if (rc >= 0 && out->duration_ns < out->window_ns)
		out->window_ns = out->duration_ns > 1 ? out->duration_ns : 1;
	if (rc >= 0)
		rc = take_queries(tables, out, err);
	tables_close(tables);
	return rc < 0 ? rc : 0;
}
