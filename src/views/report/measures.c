#include "views/report/measures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "views/query/rows.h"
#include "views_sql.h"

struct list {
	struct measure *items;
	size_t count, room;
};

static int measure_row(const struct rows *rows, void *context)
{
	struct list *list = context;
	struct measure *one;

	if (!grow((void **)&list->items, &list->room, list->count, sizeof(*list->items)))
		return -ENOMEM;
	one = &list->items[list->count];
	*one = (struct measure){ .name = rows_take_text(rows, 0) };
	rows_copy_text(rows, 1, one->source, sizeof(one->source));
	one->count = rows_number(rows, 2, 0);
	one->total = rows_number(rows, 3, NAN);
	one->mean = rows_number(rows, 4, NAN);
	one->std = rows_number(rows, 5, NAN);
	one->least = rows_number(rows, 6, NAN);
	one->most = rows_number(rows, 7, NAN);
	one->p50 = rows_number(rows, 8, NAN);
	one->p90 = rows_number(rows, 9, NAN);
	one->p99 = rows_number(rows, 10, NAN);
	one->last = rows_number(rows, 11, NAN);
	list->count += one->name != NULL;
	return one->name ? 0 : -ENOMEM;
}

static void gather_memory(struct tables *tables, const struct facts *facts, struct measures *out)
{
	double allocated = tables_number(
		tables, "SELECT max(live_bytes) FROM (SELECT live_bytes FROM alloc.timeline)", -1);

	out->peak_reserved = facts->memory.peak_bytes;
	out->peak_allocated = allocated >= 0 ? allocated : facts->memory.peak_bytes;
	out->memory_source = allocated >= 0		    ? "allocator"
			     : facts->memory.peak_bytes > 0 ? "process"
							    : "not recorded";
	if (out->peak_reserved < out->peak_allocated)
		out->peak_reserved = out->peak_allocated;
}

static int top_row(const struct rows *rows, void *context)
{
	struct measures *out = context;

	rows_copy_text(rows, 0, out->iterations_of, sizeof(out->iterations_of));
	out->iterations_per_s = rows_number(rows, 1, NAN) * 1e9 / out->wall_ns;
	return 1;
}

/* Iterations: the region "iteration", else steps, else the longest outermost region; per second of
   wall time. */
static int gather_throughput(struct tables *tables, const struct facts *facts, struct measures *out,
			     struct kymo_error *err)
{
	double samples = tables_number(
		tables, "SELECT sum(value) FROM trace.counters WHERE name = 'batch_size'", NAN);
	int rc;

	out->iterations_per_s = NAN;
	out->samples_per_s = out->wall_ns > 0 ? samples * 1e9 / out->wall_ns : NAN;
	if (out->wall_ns <= 0)
		return 0;
	rc = rows_each(tables,
		       "SELECT name, sum(count) FROM trace.regions WHERE name = 'iteration' AND "
		       "count > 0 GROUP BY 1",
		       top_row, out, err);
	if (!rc && facts->steps.ever) {
		snprintf(out->iterations_of, sizeof(out->iterations_of), "steps");
		out->iterations_per_s = (double)facts->steps.ever * 1e9 / out->wall_ns;
		return 0;
	}
	if (!rc)
		rc = rows_each(tables, sql_measures_iterations, top_row, out, err);
	return rc < 0 ? rc : 0;
}

int measures_gather(struct tables *tables, const struct facts *facts, struct measures *out,
		    struct kymo_error *err)
{
	struct list timing = { 0 }, metrics = { 0 };
	int rc = rows_each(tables, sql_measures_timing, measure_row, &timing, err);

	if (!rc)
		rc = rows_each(tables, sql_measures_metrics, measure_row, &metrics, err);
	*out = (struct measures){ .timing = timing.items,
				  .timing_count = timing.count,
				  .metrics = metrics.items,
				  .metric_count = metrics.count,
				  .wall_ns = facts->duration_ns };
	if (rc == -ENOMEM)
		return error_set(err, ENOMEM, "out of memory for the report");
	if (rc)
		return rc;
	gather_memory(tables, facts, out);
	return gather_throughput(tables, facts, out, err);
}

void measures_fini(struct measures *measures)
{
	for (size_t i = 0; i < measures->timing_count; i++)
		free(measures->timing[i].name);
	for (size_t i = 0; i < measures->metric_count; i++)
		free(measures->metrics[i].name);
	free(measures->timing);
	free(measures->metrics);
	*measures = (struct measures){ 0 };
}

int measures_write(struct tables *tables,
		   void (*fill)(struct buf *out, struct tables *tables, const struct facts *facts,
				const struct measures *measures),
		   FILE *out, struct kymo_error *err)
{
	struct measures measures = { 0 };
	struct buf buf = { 0 };
	struct facts facts;
	int rc = facts_gather(tables, &facts, err);

	if (!rc)
		rc = measures_gather(tables, &facts, &measures, err);
	if (!rc)
		fill(&buf, tables, &facts, &measures);
	if (!rc && buf.failed)
		rc = error_set(err, ENOMEM, "out of memory for the report");
	if (!rc)
		fwrite(buf_get(&buf), 1, buf.used, out);
	buf_fini(&buf);
	measures_fini(&measures);
	facts_fini(&facts);
	return rc;
}
