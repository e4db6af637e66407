/* trace.regions: exact totals of all streams, merged by source, name, pid and instance; Python
   functions also by file. */
#include "tables/scan/costs.h"
#include "tables/scan/meta.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hist.h"
#include "base/schema.h"

/* One contribution: the totals of a stream, or an open zone. */
struct part {
	const struct store_name *name;
	const struct store_process *process;
	const struct store_total *total; /* NULL for an open zone */
};

struct parts {
	struct part *list;
	size_t count;
};

/* A region while it is summed up. Sums are in ns, converted with the clock of each process; the
   histogram is in ticks of the first. */
struct region {
	const struct store_name *name;
	const struct store_process *process;
	uint64_t count, open;
	int64_t total_ns, child_ns, min_ns, max_ns;
	long double sum_ns, square_ns;
	uint64_t histogram[KYMO_HIST_BUCKETS];
};

static size_t parts_room(const struct recording *recording)
{
	size_t room = 1;

	for (size_t i = 0; i < recording->stream_count; i++)
		room += recording->streams[i].total_count + recording->streams[i].open_count;
	return room;
}

static void regions_add_part(struct parts *parts, const struct recording *recording,
			     const struct store_stream *stream, uint32_t name,
			     const struct store_total *total)
{
	if (!name || name >= recording->name_count || stream->process >= recording->process_count)
		return;
	parts->list[parts->count++] = (struct part){ &recording->names[name],
						     &recording->processes[stream->process],
						     total };
}

static bool parts_take(struct parts *parts, const struct recording *recording)
{
	parts->count = 0;
	parts->list = malloc(parts_room(recording) * sizeof(parts->list[0]));
	if (!parts->list)
		return false;
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];

		for (size_t k = 0; k < stream->total_count; k++)
			regions_add_part(parts, recording, stream, stream->totals[k].name,
					 &stream->totals[k]);
		for (size_t k = 0; k < stream->open_count; k++)
			regions_add_part(parts, recording, stream, stream->open_zones[k].name,
					 NULL);
	}
	return true;
}

static int compare_numbers(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* A C zone has a chosen name, which means the same everywhere. Python functions named parse
   exist in many files. */
static int compare_files(const struct store_name *a, const struct store_name *b)
{
	size_t shorter = a->file_bytes < b->file_bytes ? a->file_bytes : b->file_bytes;
	int order;

	if (a->source != KYMO_SOURCE_PYTHON)
		return 0;
	order = shorter ? memcmp(a->file, b->file, shorter) : 0;
	return order ? order : compare_numbers((int64_t)a->file_bytes, (int64_t)b->file_bytes);
}

/* Whether two parts are one region. The line does not count, so a name used in two places is one
   row. */
static int compare_parts(const void *left, const void *right)
{
	const struct part *a = left, *b = right;
	int order = compare_numbers(a->name->source, b->name->source);

	if (!order)
		order = strcmp(a->name->text, b->name->text);
	if (!order)
		order = compare_files(a->name, b->name);
	if (!order)
		order = compare_numbers(a->process->pid, b->process->pid);
	if (!order && a->process->run != b->process->run)
		order = compare_numbers(a->process->run, b->process->run);
	if (!order)
		order = compare_numbers(a->name->instance, b->name->instance);
	return order;
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void region_add(struct region *region, const struct store_total *total,
		       const struct store_clock *clock)
{
	long double scale = (long double)clock->mult / 4294967296.0L;
	int64_t min_ns = store_clock_span_ns(clock, total->min_ticks);
	int64_t max_ns = store_clock_span_ns(clock, total->max_ticks);

	if (!total->count)
		return;
	region->min_ns = !region->count || min_ns < region->min_ns ? min_ns : region->min_ns;
	region->max_ns = !region->count || max_ns > region->max_ns ? max_ns : region->max_ns;
	region->count += total->count;
	region->total_ns = add_saturating(region->total_ns,
					  store_clock_span_ns(clock, total->sum_ticks));
	region->child_ns = add_saturating(region->child_ns,
					  store_clock_span_ns(clock, total->child_ticks));
	region->sum_ns += (long double)total->sum_ticks * scale;
	region->square_ns += (long double)total->square_ticks * scale * scale;
	for (uint32_t i = 0; total->histogram && i < KYMO_HIST_BUCKETS; i++)
		region->histogram[i] += total->histogram[i];
}

static double deviation_ns(const struct region *region)
{
	long double count = (long double)region->count;
	long double spread = region->square_ns - region->sum_ns * region->sum_ns / count;

	return spread > 0 ? (double)sqrtl(spread / (count - 1)) : 0;
}

/* The cost of one zone of a source, measured by the recorder or the source's adapter; 0 if not
   measured. */
static double cost_ns(const struct store_process *process, uint32_t source)
{
	const struct kymo_control *control = &process->control;
	const size_t sources = sizeof(control->source_cost_ticks) /
			       sizeof(control->source_cost_ticks[0]);
	uint64_t ticks = source == KYMO_SOURCE_C ? control->own_cost_ticks
			 : source < sources	 ? control->source_cost_ticks[source]
						 : 0;

	return (double)ticks * store_clock_tick_ns(&process->clock);
}

enum {
	SOURCE,
	NAME,
	COUNT,
	TOTAL,
	SELF,
	MIN,
	MAX,
	MEAN,
	STDDEV,
	P50,
	P90,
	P99,
	OPEN,
	PID,
	INSTANCE,
	OWN_COST,
	FILE_NAME,
	LINE,
	RANK,
	HOST
};

static void region_times(const struct region *region, struct meta_cell *row)
{
	static const struct {
		int column;
		double share;
	} quantiles[] = { { P50, 0.5 }, { P90, 0.9 }, { P99, 0.99 } };

	meta_number(&row[MIN], region->min_ns);
	meta_number(&row[MAX], region->max_ns);
	meta_tenths(&row[MEAN], (double)(region->sum_ns / (long double)region->count));
	if (region->count > 1)
		meta_tenths(&row[STDDEV], deviation_ns(region));
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		int64_t ns = hist_quantile(region->histogram, quantiles[i].share,
					   store_clock_tick_ns(&region->process->clock),
					   region->min_ns, region->max_ns);

		if (ns >= 0)
			meta_number(&row[quantiles[i].column], ns);
	}
	/* The cost of a device is that of an operation, which exceeds that of a wait. */
	if (region->name->source != KYMO_SOURCE_DEVICE &&
	    cost_ns(region->process, region->name->source) > 0)
		meta_number(&row[OWN_COST],
			    llround((double)region->count *
				    cost_ns(region->process, region->name->source)));
}

static void regions_region_row(const struct region *region, struct meta_cell *row)
{
	meta_text(&row[SOURCE], schema_source_word(region->name->source));
	meta_text_bytes(&row[NAME], region->name->text, region->name->text_bytes);
	meta_number(&row[COUNT], (int64_t)region->count);
	meta_number(&row[TOTAL], region->total_ns);
	meta_number(&row[SELF],
		    region->total_ns > region->child_ns ? region->total_ns - region->child_ns : 0);
	meta_number(&row[OPEN], (int64_t)region->open);
	meta_number(&row[PID], region->process->pid);
	if (region->process->rank >= 0)
		meta_number(&row[RANK], region->process->rank);
	meta_host(&row[HOST], region->process->host);
	if (region->name->instance)
		meta_number(&row[INSTANCE], region->name->instance);
	meta_text_bytes(&row[FILE_NAME], region->name->file, region->name->file_bytes);
	if (region->name->line)
		meta_number(&row[LINE], region->name->line);
	if (region->count)
		region_times(region, row);
}

static void regions_merge(const struct parts *parts, struct region *region, struct meta_rows *rows)
{
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->list[i];

		if (!i || compare_parts(part, part - 1)) {
			if (i)
				regions_region_row(region, meta_add(rows));
			memset(region, 0, sizeof(*region));
			region->name = part->name;
			region->process = part->process;
		}
		if (part->total)
			region_add(region, part->total, &part->process->clock);
		else
			region->open++;
	}
	if (parts->count)
		regions_region_row(region, meta_add(rows));
}

void regions_fill(struct meta_rows *rows, const struct tables *tables)
{
	struct region *region = malloc(sizeof(*region));
	struct parts parts;

	if (!parts_take(&parts, tables->recording) || !region) {
		rows->failed = true;
		goto out;
	}
	if (parts.count)
		qsort(parts.list, parts.count, sizeof(parts.list[0]), compare_parts);
	regions_merge(&parts, region, rows);
out:
	free(parts.list);
	free(region);
}

/* ---- kymo.overhead ----------------------------------------------------------------------- */

#define SOURCES 16u

struct overhead {
	uint64_t events;
	double total_ns, wall_ns;
	bool all_known;
};

static void overhead_add(struct overhead *overhead, const struct store_process *process,
			 uint32_t source, uint64_t events, double *wall_counted)
{
	double each_ns = cost_ns(process, source);

	if (!overhead->events)
		overhead->all_known = true;
	overhead->events += events;
	overhead->all_known &= each_ns > 0;
	overhead->total_ns += (double)events * each_ns;
	if (!*wall_counted) {
		*wall_counted = (double)(process->ended_ns - process->started_ns);
		overhead->wall_ns += *wall_counted > 0 ? *wall_counted : 0;
	}
}

/* Sources whose cost is per row: torch's backward and device operations have rows and no zones. */
static const struct {
	uint32_t source;
	const char *table;
} by_rows[] = {
	{ KYMO_SOURCE_TORCH, "python.torch_trace" },
	{ KYMO_SOURCE_DEVICE, "device.ops" },
};
#define BY_ROWS (sizeof(by_rows) / sizeof(by_rows[0]))

static bool is_by_rows(uint32_t source)
{
	for (size_t i = 0; i < BY_ROWS; i++)
		if (by_rows[i].source == source)
			return true;
	return false;
}

static void overhead_of_zones(const struct parts *parts, const struct recording *recording,
			      struct overhead *sources, double *wall)
{
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->list[i];
		size_t process = (size_t)(part->process - recording->processes);
		uint32_t source = part->name->source;

		if (part->total && part->total->count && source < SOURCES && !is_by_rows(source))
			overhead_add(&sources[source], part->process, source, part->total->count,
				     &wall[source * recording->process_count + process]);
	}
}

static void overhead_of_rows(const struct recording *recording, uint32_t source, const char *table,
			     struct overhead *sources, double *wall)
{
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];

		if (stream->emitted && !strcmp(stream->table, table))
			overhead_add(&sources[source], &recording->processes[stream->process],
				     source, stream->emitted,
				     &wall[source * recording->process_count + stream->process]);
	}
}

static void overhead_row(const struct overhead *overhead, uint32_t source, struct meta_cell *row)
{
	meta_text(&row[0], schema_source_word(source));
	meta_number(&row[1], (int64_t)overhead->events);
	if (!overhead->all_known)
		return;
	meta_tenths(&row[2], overhead->total_ns / (double)overhead->events);
	meta_number(&row[3], llround(overhead->total_ns));
	if (overhead->wall_ns > 0)
		meta_real(&row[4], 100.0 * overhead->total_ns / overhead->wall_ns);
}

void regions_fill_overhead(struct meta_rows *rows, const struct tables *tables)
{
	const struct recording *recording = tables->recording;
	struct overhead sources[SOURCES];
	struct parts parts;
	/* By source and process: whether its wall time is already included. */
	double *wall = calloc(SOURCES * (recording->process_count + 1), sizeof(wall[0]));

	memset(sources, 0, sizeof(sources));
	if (!parts_take(&parts, recording) || !wall) {
		rows->failed = true;
		goto out;
	}
	overhead_of_zones(&parts, recording, sources, wall);
	for (size_t i = 0; i < BY_ROWS; i++)
		overhead_of_rows(recording, by_rows[i].source, by_rows[i].table, sources, wall);
	for (uint32_t i = 0; i < SOURCES; i++)
		if (sources[i].events)
			overhead_row(&sources[i], i, meta_add(rows));
	costs_fill(rows, recording);
out:
	free(parts.list);
	free(wall);
}
