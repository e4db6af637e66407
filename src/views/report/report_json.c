/* The report as JSON: timing in ms, memory in bytes, throughput per second of wall time. Values are
   numbers, or null if not known. */
#include "views/report/report_file.h"

#include <math.h>
#include <string.h>

#include "views/term/format.h"
#include "views/query/json.h"
#include "views/report/measures.h"
#include "views/query/rows.h"
#include "views/verdicts/verdict.h"
#include "views/verdicts/where.h"

static void report_json_add_number(struct buf *out, const char *key, double value)
{
	buf_print(out, "\"%s\":%s", key, format_number(value, "null").text);
}

static void add_string(struct buf *out, const char *key, const char *text)
{
	buf_print(out, "\"%s\":", key);
	json_text(out, text, strlen(text));
}

static void report_json_add_measure(struct buf *out, const struct measure *one, bool timing)
{
	const struct {
		const char *key;
		double value;
	} numbers[] = {
		{ "mean", one->mean }, { "std", one->std },	{ "min", one->least },
		{ "max", one->most },  { "count", one->count }, { "total", one->total },
		{ "p50", one->p50 },   { "p90", one->p90 },	{ "p99", one->p99 },
	};

	json_text(out, one->name, strlen(one->name));
	buf_text(out, ":{");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		buf_text(out, i ? "," : "");
		report_json_add_number(out, numbers[i].key, numbers[i].value);
	}
	buf_char(out, ',');
	if (timing)
		add_string(out, "source", one->source);
	else
		report_json_add_number(out, "last", one->last);
	buf_char(out, '}');
}

static void add_measures(struct buf *out, const char *key, const struct measure *list, size_t count,
			 bool timing)
{
	buf_print(out, "\"%s\":{", key);
	for (size_t i = 0; i < count; i++) {
		buf_text(out, i ? ",\n" : "\n");
		report_json_add_measure(out, &list[i], timing);
	}
	buf_text(out, "},\n");
}

static void add_run(struct buf *out, struct tables *tables, const struct facts *facts)
{
	buf_text(out, "\"run\":{");
	add_string(out, "program", facts->program);
	buf_print(out, ",\"pid\":%d,\"live\":%s,", facts->pid, facts->live ? "true" : "false");
	add_string(out, "ended", facts->how);
	buf_char(out, ',');
	report_json_add_number(out, "duration_ns", facts->duration_ns);
	buf_char(out, ',');
	report_json_add_number(
		out, "started_unix_ns",
		tables_number(tables, "SELECT min(started_unix_ns) FROM kymo.runs", NAN));
	buf_char(out, ',');
	report_json_add_number(out, "rank", facts->rank >= 0 ? facts->rank : NAN);
	buf_char(out, ',');
	report_json_add_number(out, "ranks", facts->ranks >= 0 ? facts->ranks : NAN);
	buf_char(out, ',');
	add_string(out, "clock", facts->clock);
	buf_text(out, "},\n\"steps\":{");
	report_json_add_number(out, "count", (double)facts->steps.ever);
	buf_char(out, ',');
	report_json_add_number(out, "median_ms",
			       facts->steps.count ? facts->steps.median_ns / 1e6 : NAN);
	buf_char(out, ',');
	report_json_add_number(out, "p99_ms", facts->steps.count ? facts->steps.p99_ns / 1e6 : NAN);
	buf_text(out, "},\n");
}

static void add_verdicts(struct buf *out, struct tables *tables, const struct facts *facts)
{
	struct verdict verdicts[VERDICT_MOST];
	size_t count = verdict_all(tables, facts, true, verdicts, VERDICT_MOST);

	buf_text(out, "\"verdicts\":[");
	for (size_t i = 0; i < count; i++) {
		buf_text(out, i ? ",\n{" : "\n{");
		add_string(out, "name", verdicts[i].name);
		buf_char(out, ',');
		add_string(out, "sentence", verdicts[i].sentence);
		buf_char(out, ',');
		add_string(out, "evidence", verdicts[i].evidence);
		buf_char(out, ',');
		add_string(out, "try", verdicts[i].advice);
		buf_char(out, ',');
		add_string(out, "sql", verdicts[i].query);
		buf_char(out, ',');
		report_json_add_number(out, "gain_pct", 100 * verdicts[i].gain);
		buf_text(out, ",\"where\":");
		where_add_json(out, &verdicts[i]);
		buf_char(out, '}');
	}
	buf_text(out, "],\n");
}

/* After the verdicts, whose failures are among them. */
static void add_problems(struct buf *out, struct tables *tables)
{
	const char *line = tables_problems(tables), *end;

	buf_text(out, "\"problems\":[");
	for (bool first = true; (end = strchr(line, '\n')); line = end + 1, first = false) {
		buf_text(out, first ? "" : ",");
		json_text(out, line, (size_t)(end - line));
	}
	buf_text(out, "],\n");
}

static void add_losses(struct buf *out, const struct facts *facts)
{
	const struct facts_rows *total = &facts->total;

	buf_text(out, "\"losses\":{");
	report_json_add_number(out, "emitted", (double)total->emitted);
	buf_char(out, ',');
	report_json_add_number(out, "kept", (double)total->kept);
	buf_char(out, ',');
	report_json_add_number(out, "overwritten", (double)total->overwritten);
	buf_char(out, ',');
	report_json_add_number(out, "dropped", (double)total->dropped);
	buf_text(out, "},\n");
	report_json_add_number(out, "overhead_pct",
			       facts->overhead_pct >= 0 ? facts->overhead_pct : NAN);
}

static void add_summary(struct buf *out, const struct measures *measures)
{
	buf_text(out, "\"memory\":{");
	report_json_add_number(out, "peak_allocated", measures->peak_allocated);
	buf_char(out, ',');
	report_json_add_number(out, "peak_reserved", measures->peak_reserved);
	buf_char(out, ',');
	add_string(out, "source", measures->memory_source);
	buf_text(out, "},\n\"throughput\":{");
	report_json_add_number(out, "samples_per_sec", measures->samples_per_s);
	buf_char(out, ',');
	report_json_add_number(out, "iterations_per_sec", measures->iterations_per_s);
	buf_char(out, ',');
	add_string(out, "iterations_of", measures->iterations_of);
	buf_text(out, "},\n");
}

static void report_json_fill(struct buf *out, struct tables *tables, const struct facts *facts,
			     const struct measures *measures)
{
	buf_text(out, REPORT_JSON_MARK "\n");
	add_measures(out, "timing", measures->timing, measures->timing_count, true);
	add_summary(out, measures);
	add_measures(out, "metrics", measures->metrics, measures->metric_count, false);
	add_run(out, tables, facts);
	add_verdicts(out, tables, facts);
	add_problems(out, tables);
	add_losses(out, facts);
	buf_text(out, "}\n");
}

int report_json(struct tables *tables, struct report_options *options, FILE *out,
		struct kymo_error *err)
{
	(void)options;
	return measures_write(tables, report_json_fill, out, err);
}
