#include "serve/metrics/metrics_regions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schema.h"
#include "serve/metrics/metrics_rows.h"

struct metrics_region {
	const struct store_name *name;
	double count, sum_s, self_s;
};

static void regions_sum(const struct recording *recording, struct metrics_region *regions)
{
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		double tick_s = store_clock_tick_ns(&recording->processes[stream->process].clock) /
				1e9;

		for (size_t t = 0; t < stream->total_count; t++) {
			const struct store_total *total = &stream->totals[t];
			struct metrics_region *region = &regions[total->name];

			region->name = &recording->names[total->name];
			region->count += (double)total->count;
			region->sum_s += (double)total->sum_ticks * tick_s;
			region->self_s += (double)total->sum_ticks * tick_s -
					  (double)total->child_ticks * tick_s;
		}
	}
}

/* As the labels show it: names that are cut may be equal. */
static int by_label(const void *left, const void *right)
{
	const struct store_name *a = ((const struct metrics_region *)left)->name,
				*b = ((const struct metrics_region *)right)->name;
	int order = strncmp(a->text, b->text, OPENMETRICS_LABEL_BYTES - 4);

	order = order ? order : strncmp(a->file, b->file, OPENMETRICS_LABEL_BYTES - 4);
	order = order ? order : (a->line > b->line) - (a->line < b->line);
	return order ? order : (a->source > b->source) - (a->source < b->source);
}

static int metrics_by_time(const void *left, const void *right)
{
	double a = ((const struct metrics_region *)left)->sum_s,
	       b = ((const struct metrics_region *)right)->sum_s;

	return (a < b) - (a > b);
}

/* Regions without a zone are left out; equal ones become one. Returns how many there are. */
static size_t regions_join(struct metrics_region *regions, size_t room)
{
	size_t used = 0, count = 0;

	for (size_t i = 0; i < room; i++)
		if (regions[i].count > 0)
			regions[used++] = regions[i];
	if (used)
		qsort(regions, used, sizeof(*regions), by_label);
	for (size_t i = 0; i < used; i++) {
		if (count && !by_label(&regions[count - 1], &regions[i])) {
			regions[count - 1].count += regions[i].count;
			regions[count - 1].sum_s += regions[i].sum_s;
			regions[count - 1].self_s += regions[i].self_s;
		} else {
			regions[count++] = regions[i];
		}
	}
	return count;
}

static void write_region(const struct metrics_region *region, const char *run, struct buf *out)
{
	struct buf labels = { 0 };
	char line[16];

	buf_text(&labels, run);
	openmetrics_label(&labels, "region", region->name->text);
	openmetrics_label(&labels, "source", schema_source_word(region->name->source));
	openmetrics_label(&labels, "file", region->name->file);
	snprintf(line, sizeof(line), "%u", region->name->line);
	openmetrics_label(&labels, "line", line);
	openmetrics_sample(&out[OPENMETRICS_CALLS], OPENMETRICS_CALLS, buf_get(&labels),
			   region->count);
	openmetrics_sample(&out[OPENMETRICS_REGION], OPENMETRICS_REGION, buf_get(&labels),
			   region->sum_s);
	openmetrics_sample(&out[OPENMETRICS_SELF], OPENMETRICS_SELF, buf_get(&labels),
			   region->self_s > 0 ? region->self_s : 0);
	buf_fini(&labels);
}

void metrics_regions_write(const struct recording *recording, const char *labels,
			   struct buf out[OPENMETRICS_COUNT])
{
	struct metrics_region *regions = calloc(recording->name_count + 1, sizeof(*regions));
	size_t count;

	if (!regions)
		return;
	regions_sum(recording, regions);
	count = regions_join(regions, recording->name_count);
	if (count)
		qsort(regions, count, sizeof(*regions), metrics_by_time);
	for (size_t i = 0; i < count && i < METRICS_REGIONS; i++)
		write_region(&regions[i], labels, out);
	free(regions);
}
