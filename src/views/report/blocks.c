#include "views/report/blocks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tables/sql_fill.h"
#include "views/verdicts/facts.h"
#include "views/term/format.h"
#include "views/query/json.h"
#include "views/query/output.h"
#include "views/verdicts/verdict.h"
#include "views/verdicts/where.h"
#include "views_sql.h"

#define VERDICTS 6

static const struct {
	const char *name, *sql;
	bool first; /* it takes little time */
} blocks[] = {
	{ "run", sql_block_run, true },
	{ "losses", sql_block_losses, true },
	{ "streams", sql_block_streams, true },
	{ "overhead", sql_block_overhead, true },
	{ "regions", sql_block_regions, true },
	{ "steps", sql_block_steps, true },
	{ "step_facts", sql_block_step_facts, true },
	{ "parts", sql_block_parts, true },
	{ "slowest", sql_block_slowest, true },
	{ "open", sql_block_open, true },
	{ "counters", sql_block_counters, true },
	{ "modules", sql_block_modules, true },
	{ "queues", sql_block_queues, false },
	{ "models", sql_block_models, false },
	{ "launches", sql_block_launches, false },
	{ "samples", sql_block_samples, false },
	{ "native", sql_block_native, false },
	{ "sites", sql_block_sites, false },
	{ "allocated", sql_allocations_peak, false },
	{ "growth", sql_allocations_growth, false },
	{ "ranks", sql_block_ranks, true },
	{ "breakdown", sql_block_breakdown, false },
};

static void blocks_write_text(FILE *out, const char *text)
{
	struct buf buf = { 0 };

	json_text(&buf, text, strlen(text));
	fputs(buf_get(&buf), out);
	buf_fini(&buf);
}

/* ---- figures -------------------------------------------------------------------------------- */

struct figure {
	const char *label;
	char value[48], note[64];
};

static double slow_steps(struct tables *tables)
{
	return tables_number(tables, sql_block_slow_steps, 0);
}

static void rate_text(double per_second, char *out, size_t bytes)
{
	if (per_second >= 1000)
		snprintf(out, bytes, "%s", format_count((uint64_t)per_second).text);
	else
		snprintf(out, bytes, "%.3g", per_second);
}

/* Utilisation of the device, or of the CPU if there is none. */
static void busy_figure(struct tables *tables, const struct facts *facts, bool first,
			struct figure *out)
{
	static const char sql[] = "SELECT max(busy_ns) / (SELECT max(duration_ns) FROM kymo.runs) "
				  "FROM device.queues";
	bool of_device = facts_rows_of(facts, "device.ops").kept;
	double busy = first && of_device ? -1 : tables_number(tables, sql, -1);

	if (first && of_device) {
		*out = (struct figure){ "Device busy", "…", "is being read" };
		return;
	}
	if (busy >= 0) {
		*out = (struct figure){ "Device busy", "", "of the run, busiest queue" };
		snprintf(out->value, sizeof(out->value), "%s", format_percent(busy).text);
		return;
	}
	*out = (struct figure){ "Processor", "not recorded", "" };
	if (facts->memory.cpu_pct < 0)
		return;
	snprintf(out->value, sizeof(out->value), "%.0f %%", facts->memory.cpu_pct);
	snprintf(out->note, sizeof(out->note), "of a core, mean");
}

static void memory_figure(const struct facts *facts, struct figure *out)
{
	*out = (struct figure){ "Peak memory", "not recorded", "" };
	if (facts->memory.peak_bytes <= 0)
		return;
	snprintf(out->value, sizeof(out->value), "%s", format_bytes(facts->memory.peak_bytes).text);
	snprintf(out->note, sizeof(out->note), "at %s",
		 format_clock(facts->memory.peak_at_ns, true).text);
}

static void step_figures(struct tables *tables, const struct facts *facts, bool first,
			 struct figure *out)
{
	const struct facts_steps *steps = &facts->steps;
	double span_ns = steps->last_ns - steps->first_ns;

	out[0] = (struct figure){ "Steps", "", "" };
	snprintf(out[0].value, sizeof(out[0].value), "%s", format_count(steps->ever).text);
	if (steps->count < steps->ever)
		snprintf(out[0].note, sizeof(out[0].note), "last %s kept",
			 format_count(steps->count).text);
	else
		snprintf(out[0].note, sizeof(out[0].note), "in %s",
			 format_clock(facts->duration_ns, true).text);
	out[1] = (struct figure){ "Step, median", "", "" };
	snprintf(out[1].value, sizeof(out[1].value), "%s",
		 format_duration(steps->median_ns, true).text);
	snprintf(out[1].note, sizeof(out[1].note), "p99 %s",
		 format_duration(steps->p99_ns, true).text);
	out[2] = (struct figure){ "Throughput", "", "steps/s" };
	rate_text(span_ns > 0 ? (double)steps->count * 1e9 / span_ns : 0, out[2].value,
		  sizeof(out[2].value));
	busy_figure(tables, facts, first, &out[3]);
	memory_figure(facts, &out[4]);
	out[5] = (struct figure){ "Slow steps", "", "over 2 × median" };
	snprintf(out[5].value, sizeof(out[5].value), "%s",
		 format_count((uint64_t)slow_steps(tables)).text);
}

/* A program that marked nothing has stack samples instead. */
static void region_figure(const struct facts *facts, struct figure *out)
{
	uint64_t python = facts_rows_of(facts, "python.samples").emitted;
	uint64_t samples = python ? python : facts_rows_of(facts, "native.samples").emitted;
	bool sampled = !facts->region_all && samples;

	*out = (struct figure){ sampled ? "Stack samples" : "Regions", "", "" };
	snprintf(out->value, sizeof(out->value), "%s",
		 format_count(sampled ? samples : facts->region_all).text);
	snprintf(out->note, sizeof(out->note), "%s", sampled ? "of all threads" : "measured");
}

static void run_figures(struct tables *tables, const struct facts *facts, bool first,
			struct figure *out)
{
	out[0] = (struct figure){ "Run", "", "" };
	snprintf(out[0].value, sizeof(out[0].value), "%s",
		 format_clock(facts->duration_ns, true).text);
	snprintf(out[0].note, sizeof(out[0].note), "%s", facts->how);
	region_figure(facts, &out[1]);
	out[2] = (struct figure){ "Zones", "", "" };
	snprintf(out[2].value, sizeof(out[2].value), "%s",
		 format_count(facts_rows_of(facts, "trace.zones").emitted).text);
	busy_figure(tables, facts, first, &out[3]);
	memory_figure(facts, &out[4]);
	out[5] = (struct figure){ "Threads", "", "recorded" };
	snprintf(out[5].value, sizeof(out[5].value), "%.0f",
		 tables_number(tables, "SELECT count(*) FROM kymo.threads", 0));
}

static void write_figures(struct tables *tables, const struct facts *facts, bool first, FILE *out)
{
	struct figure figures[6];

	if (facts->steps.count)
		step_figures(tables, facts, first, figures);
	else
		run_figures(tables, facts, first, figures);
	fputs("\"figures\":[", out);
	for (size_t i = 0; i < 6; i++) {
		fputs(i ? ",{\"label\":" : "{\"label\":", out);
		blocks_write_text(out, figures[i].label);
		fputs(",\"value\":", out);
		blocks_write_text(out, figures[i].value);
		fputs(",\"note\":", out);
		blocks_write_text(out, figures[i].note);
		fputc('}', out);
	}
	fputs("],\n", out);
}

/* ---- verdicts, memory ----------------------------------------------------------------------- */

static void blocks_write_where(FILE *out, const struct verdict *verdict)
{
	struct buf where = { 0 };

	where_add_json(&where, verdict);
	fprintf(out, ",\"where\":%s", buf_get(&where)); /* not foreign: JSON */
	buf_fini(&where);
}

static void write_verdicts(struct tables *tables, const struct facts *facts, FILE *out)
{
	struct verdict verdicts[VERDICTS];
	size_t count = verdict_all(tables, facts, true, verdicts, VERDICTS);

	fputs("\"verdicts\":[", out);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ",{\"name\":" : "{\"name\":", out);
		blocks_write_text(out, verdicts[i].name);
		fputs(",\"text\":", out);
		blocks_write_text(out, verdicts[i].sentence);
		fputs(",\"evidence\":", out);
		blocks_write_text(out, verdicts[i].evidence);
		fputs(",\"try\":", out);
		blocks_write_text(out, verdicts[i].advice);
		fputs(",\"sql\":", out);
		blocks_write_text(out, verdicts[i].query);
		fputs(",\"view\":", out);
		blocks_write_text(out, verdicts[i].view);
		fputs(",\"find\":", out);
		blocks_write_text(out, verdicts[i].find);
		blocks_write_where(out, &verdicts[i]);
		fprintf(out, ",\"gain_pct\":%.1f}", 100 * verdicts[i].gain);
	}
	fputs("],\n", out);
}

static void write_memory(const struct facts *facts, FILE *out)
{
	const struct facts_memory *memory = &facts->memory;

	fprintf(out,
		"\"memory_facts\":[{\"peak_bytes\":%.0f,\"peak_at_ns\":%.0f,\"early_bytes\":%.0f,"
		"\"early_at_ns\":%.0f,"
		"\"last_bytes\":%.0f,\"samples\":%.0f}],\n",
		memory->peak_bytes, memory->peak_at_ns, memory->early_bytes, memory->early_at_ns,
		memory->last_bytes, (double)memory->samples);
	if (facts->overhead_pct >= 0)
		fprintf(out, "\"overhead_pct\":%.6g,\n", facts->overhead_pct);
	else
		fputs("\"overhead_pct\":null,\n", out);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int write_block(struct tables *tables, const char *name, const char *sql, FILE *out,
		       struct kymo_error *err)
{
	struct output_options options = { .limit = UINT64_MAX };
	struct output_count count = { 0 };
	struct tables_result *result = NULL;
	int rc = tables_query(tables, sql, &result, err);

	fprintf(out, "\"%s\":", name); /* not foreign: the name of a block */
	if (!rc)
		rc = output_json_write(result, &options, out, &count, err);
	tables_result_close(result);
	return rc;
}

static int write_blocks(struct tables *tables, const struct facts *facts, bool first, FILE *out,
			struct kymo_error *err)
{
	int rc = 0;

	fputs(first ? "\"partial\":true,\"recording\":" : "\"recording\":", out);
	blocks_write_text(out, tables_name(tables));
	fputs(",\n", out);
	if (!first)
		write_verdicts(tables, facts, out);
	write_figures(tables, facts, first, out);
	write_memory(facts, out);
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]) && !rc; i++) {
		if (first && !blocks[i].first)
			continue;
		rc = write_block(tables, blocks[i].name, blocks[i].sql, out, err);
		fputc(',', out);
	}
	return rc ? rc : write_block(tables, "series", sql_block_series, out, err);
}

int blocks_write(struct tables *tables, const struct facts *facts, FILE *out,
		 struct kymo_error *err)
{
	return write_blocks(tables, facts, false, out, err);
}

int blocks_write_first(struct tables *tables, const struct facts *facts, FILE *out,
		       struct kymo_error *err)
{
	return write_blocks(tables, facts, true, out, err);
}

/* ---- of a time range ------------------------------------------------------------------------ */

/* Tables of these blocks, each with its column of time. */
static const struct {
	const char *table, *time;
} timed[] = {
	{ "trace.steps", "start_ns" },	   { "python.torch_trace", "ts_ns" },
	{ "python.samples", "ts_ns" },	   { "trace.counters", "ts_ns" },
	{ "device.launches", "start_ns" },
};

/* A table that holds sums over the run cannot be cut: such blocks have a query with {from} and
   {to}. */
static const struct {
	const char *name, *sql; /* NULL: the block's own, with these tables cut */
	enum {
		RANGED,
		RANGED_DEVICE, /* empty without a device: its query reads all zones */
		RANGED_RANKS, /* of the whole run, and only if ranks are chosen */
	} kind;
} ranged[] = {
	{ "steps", NULL, RANGED },
	{ "step_facts", NULL, RANGED },
	{ "parts", NULL, RANGED },
	{ "slowest", NULL, RANGED },
	{ "modules", NULL, RANGED },
	{ "samples", NULL, RANGED },
	{ "counters", NULL, RANGED },
	{ "models", sql_block_models_within, RANGED },
	{ "queues", sql_block_queues_within, RANGED_DEVICE },
	{ "launches", NULL, RANGED_DEVICE },
	{ "series", sql_block_series, RANGED_RANKS },
	{ "sites", sql_block_sites, RANGED_RANKS },
	{ "allocated", sql_allocations_peak, RANGED_RANKS },
	{ "growth", sql_allocations_growth, RANGED_RANKS },
	{ "memory_facts", sql_block_memory_facts, RANGED_RANKS },
};

/* The same query, with each of these tables cut to the time range. */
static void add_within(struct buf *sql, const char *whole, int64_t from_ns, int64_t to_ns)
{
	while (*whole) {
		size_t i = 0, count = sizeof(timed) / sizeof(timed[0]);

		while (i < count && strncmp(whole, timed[i].table, strlen(timed[i].table)) != 0)
			i++;
		if (i == count) {
			buf_char(sql, *whole++);
			continue;
		}
		buf_print(sql, "(SELECT * FROM %s WHERE %s >= %" PRId64 " AND %s < %" PRId64 ")",
			  timed[i].table, timed[i].time, from_ns, timed[i].time, to_ns);
		whole += strlen(timed[i].table);
	}
}

static const char *find_block(const char *name)
{
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		if (!strcmp(blocks[i].name, name))
			return blocks[i].sql;
	return "";
}

static int write_ranged(struct tables *tables, size_t i, const int64_t range_ns[2],
			const struct rank_set *ranks, FILE *out, struct kymo_error *err)
{
	struct buf sql = { 0 }, cut = { 0 };
	int rc;

	if (ranged[i].sql)
		sql_fill(&sql, ranged[i].sql,
			 (struct sql_value[]){ { "from", .number = range_ns[0] },
					       { "to", .number = range_ns[1] },
					       { NULL } });
	else
		add_within(&sql, find_block(ranged[i].name), range_ns[0], range_ns[1]);
	rank_set_cut(ranks, buf_get(&sql), &cut);
	rc = sql.failed || cut.failed
		     ? error_set(err, ENOMEM, "out of memory for the time range")
		     : write_block(tables, ranged[i].name, buf_get(&cut), out, err);
	buf_fini(&sql);
	buf_fini(&cut);
	return rc;
}

int blocks_write_range(struct tables *tables, int64_t from_ns, int64_t to_ns,
		       const struct rank_set *ranks, FILE *out, struct kymo_error *err)
{
	bool device = tables_number(tables, "SELECT count(*) FROM device.ops", 0) > 0;
	int rc = 0;

	for (size_t i = 0; i < sizeof(ranged) / sizeof(ranged[0]) && !rc; i++) {
		if (ranged[i].kind == RANGED_RANKS && (!ranks || !ranks->count))
			continue;
		fputc(',', out);
		if (ranged[i].kind == RANGED_DEVICE && !device)
			fprintf(out, "\"%s\":[]", ranged[i].name);
		else
			rc = write_ranged(tables, i, (int64_t[]){ from_ns, to_ns }, ranks, out,
					  err);
	}
	return rc;
}
