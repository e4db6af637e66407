/* The report as CSV: a row per metric, with the same columns; safe in a spreadsheet (csv_text). */
#include "views/report/report_file.h"

#include <math.h>
#include <string.h>

#include "views/term/format.h"
#include "views/report/measures.h"
#include "views/query/output.h"

static void report_csv_add_number(struct buf *out, double value)
{
	buf_char(out, ',');
	buf_text(out, format_number(value, "").text);
}

static void report_csv_add_head(struct buf *out, const char *section, const char *name,
				const char *unit)
{
	output_csv_text(out, section, strlen(section));
	buf_char(out, ',');
	output_csv_text(out, name, strlen(name));
	buf_print(out, ",%s", unit);
}

static void report_csv_add_measure(struct buf *out, const char *section, const char *unit,
				   const struct measure *one)
{
	const double numbers[] = { one->count, one->mean, one->std, one->least,
				   one->most,  one->p50,  one->p90, one->p99 };

	report_csv_add_head(out, section, one->name, unit);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		report_csv_add_number(out, numbers[i]);
	buf_text(out, "\n");
}

/* A single number is its own mean, min and max. */
static void add_single(struct buf *out, const char *section, const char *name, const char *unit,
		       double value)
{
	struct measure one = { .name = (char *)name,
			       .count = 1,
			       .mean = value,
			       .least = value,
			       .most = value,
			       .p50 = value,
			       .p90 = value,
			       .p99 = value };

	if (isfinite(value))
		report_csv_add_measure(out, section, unit, &one);
}

static void report_csv_fill(struct buf *out, struct tables *tables, const struct facts *facts,
			    const struct measures *measures)
{
	(void)tables;
	(void)facts;
	buf_text(out, REPORT_CSV_MARK);
	for (size_t i = 0; i < measures->timing_count; i++)
		report_csv_add_measure(out, "timing", "ms", &measures->timing[i]);
	for (size_t i = 0; i < measures->metric_count; i++)
		report_csv_add_measure(out, "metrics", "", &measures->metrics[i]);
	add_single(out, "memory", "peak_allocated", "bytes", measures->peak_allocated);
	add_single(out, "memory", "peak_reserved", "bytes", measures->peak_reserved);
	add_single(out, "throughput", "samples_per_sec", "1/s", measures->samples_per_s);
	add_single(out, "throughput", "iterations_per_sec", "1/s", measures->iterations_per_s);
}

int report_csv(struct tables *tables, struct report_options *options, FILE *out,
	       struct kymo_error *err)
{
	(void)options;
	return measures_write(tables, report_csv_fill, out, err);
}
