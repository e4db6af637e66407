#include "views/report/blocks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "views/report/allocations.h"
#include "views/report/devices.h"
#include "views/verdicts/facts.h"
#include "views/term/format.h"
#include "views/query/json.h"
#include "views/query/output.h"
#include "views/verdicts/verdict.h"

#define VERDICTS 6

/* The process that is shown where only one can be: the one with most memory. */
#define MAIN_PID \
	"(SELECT pid FROM host.process GROUP BY pid ORDER BY max(rss_bytes) DESC, pid LIMIT 1)"
#define OF_MAIN(table) table " WHERE pid = " MAIN_PID
#define OF_MACHINE "host.cpu WHERE cpu IS NULL"
#define OF_COUNTERS \
	"trace.counters WHERE name IN (SELECT name FROM trace.counters GROUP BY 1 ORDER BY " \
	"count(*) DESC, 1 LIMIT 24)"

/* Measurements over time. */
static const struct series {
	const char *name; /* SQL: of one row */
	const char *unit, *group;
	bool timeline; /* shown there, too */
	const char *value, *from;
	/* A counter that only grows, of each of these: its rate by the second; NULL: as it is. */
	const char *rate_per;
} all_series[] = {
	{ "'Resident memory'", "bytes", "memory", true, "rss_bytes", OF_MAIN("host.process"),
	  NULL },
	{ "'Allocated, ' || source", "bytes", "memory", true, "live_bytes", "alloc.timeline",
	  NULL },
	{ "'Device memory, ' || device", "bytes", "memory", true, "live_bytes", "device.memory",
	  NULL },
	{ "'CPU, this process'", "%", "cpu", false, "cpu_pct", OF_MAIN("host.process"), NULL },
	{ "'CPU, machine'", "%", "cpu", false, "busy_pct", OF_MACHINE, NULL },
	{ "'Waiting for I/O, machine'", "%", "cpu", false, "iowait_pct", OF_MACHINE, NULL },
	{ "'Waiting for a core, machine'", "%", "cpu", false, "pressure_pct", OF_MACHINE, NULL },
	{ "'Read'", "bytes/s", "io", false, "read_bytes", OF_MAIN("host.io"), "pid" },
	{ "'Written'", "bytes/s", "io", false, "write_bytes", OF_MAIN("host.io"), "pid" },
	{ "'Received, ' || interface", "bytes/s", "network", false, "rx_bytes", "host.network",
	  "interface" },
	{ "'Sent, ' || interface", "bytes/s", "network", false, "tx_bytes", "host.network",
	  "interface" },
	{ "'GPU ' || device || ', busy'", "%", "gpu", false, "util_pct", "host.gpu", NULL },
	{ "'GPU ' || device || ', memory'", "bytes", "memory", false, "used_bytes", "host.gpu",
	  NULL },
	{ "name", "", "counter", true, "value", OF_COUNTERS, NULL },
};

static void add_series_value(struct buf *sql, const struct series *one)
{
	const char *value = one->value, *per = one->rate_per;

	if (!per)
		buf_text(sql, value);
	else
		buf_print(sql,
			  "(%s - lag(%s) OVER (PARTITION BY %s ORDER BY ts_ns)) * 1e9 / "
			  "nullif(ts_ns - "
			  "lag(ts_ns) OVER (PARTITION BY %s ORDER BY ts_ns), 0)",
			  value, value, per, per);
}

/* All of them as one query: of each at most 600 points, the least and the most of it. */
static void add_series_sql(struct buf *sql)
{
	buf_text(sql, "SELECT name, unit, g AS \"group\", timeline, list(ts ORDER BY k) AS ts, "
		      "list(low ORDER BY k) AS low, "
		      "list(high ORDER BY k) AS high FROM (SELECT o, name, unit, g, timeline, ts * "
		      "600 // (SELECT "
		      "greatest(max(duration_ns), 1) FROM kymo.runs) AS k, min(ts) AS ts, "
		      "min(v)::DOUBLE AS low, max(v)::DOUBLE AS "
		      "high FROM (");
	for (size_t i = 0; i < sizeof(all_series) / sizeof(all_series[0]); i++) {
		const struct series *one = &all_series[i];

		buf_print(sql,
			  "%sSELECT %zu AS o, %s AS name, '%s' AS unit, '%s' AS g, %s AS timeline, "
			  "ts_ns AS ts, ",
			  i ? " UNION ALL " : "", i + 1, one->name, one->unit, one->group,
			  one->timeline ? "true" : "false");
		add_series_value(sql, one);
		buf_print(sql, " AS v FROM %s", one->from);
	}
	buf_text(sql, ") WHERE isfinite(v::DOUBLE) AND name IS NOT NULL GROUP BY ALL) GROUP BY ALL "
		      "ORDER BY any_value(o), name LIMIT 60");
}

static const struct {
	const char *name, *sql;
} blocks[] = {
	{ "run",
	  "SELECT program, command, pid, state, exit_code, signal, duration_ns, started_unix_ns, "
	  "clock, clock_error_ns, "
	  "version, (SELECT min(rank) FROM kymo.processes WHERE role = 'target') AS rank, "
	  "(SELECT max(ranks) FROM kymo.processes WHERE role = 'target') AS ranks FROM kymo.runs" },
	{ "losses", "SELECT coalesce(sum(emitted), 0) AS emitted, coalesce(sum(kept), 0) AS kept, "
		    "coalesce(sum(overwritten), 0) AS "
		    "overwritten, coalesce(sum(dropped), 0) AS dropped, coalesce(sum(overwritten) "
		    "FILTER (table_name = "
		    "'trace.zones'), 0) AS zones_overwritten FROM kymo.streams" },
	{ "streams", "SELECT table_name, sum(emitted) AS emitted, sum(kept) AS kept, "
		     "sum(overwritten) AS overwritten, "
		     "sum(dropped) AS dropped FROM kymo.streams GROUP BY 1 ORDER BY 1 LIMIT 200" },
	{ "overhead",
	  "SELECT source, events, cost_ns_per_event, total_ns, pct FROM kymo.overhead" },
	{ "regions", "SELECT name, source, sum(count) AS count, sum(self_ns) AS self_ns, "
		     "sum(total_ns) AS total_ns, min(min_ns) AS "
		     "min_ns, max(max_ns) AS max_ns, arg_max(p50_ns, count) AS p50_ns, "
		     "arg_max(p90_ns, count) AS p90_ns, "
		     "arg_max(p99_ns, count) AS p99_ns FROM " FACTS_REGIONS_SQL
		     " WHERE count > 0 GROUP BY name, source "
		     "ORDER BY self_ns DESC, name LIMIT 500" },
	{ "steps", "SELECT list(x ORDER BY k) AS x, list(least ORDER BY k) AS min, list(med ORDER "
		   "BY k) AS med, "
		   "list(most ORDER BY k) AS max, list(worst ORDER BY k) AS worst_start_ns FROM "
		   "(SELECT n * parts // c AS k, "
		   "min(n) + any_value(f) AS x, min(duration_ns) AS least, median(duration_ns) AS "
		   "med, max(duration_ns) AS most, "
		   "arg_max(start_ns, duration_ns) AS worst FROM (SELECT *, row_number() OVER "
		   "(ORDER BY start_ns) - 1 AS n, "
		   "count(*) OVER () AS c, least(c, 600) AS parts, min(step) OVER () AS f "
		   "FROM " FACTS_STEPS_SQL ") GROUP BY 1)" },
	{ "step_facts", "SELECT count(*) AS count, median(duration_ns) AS median_ns, "
			"quantile_cont(duration_ns, 0.99) AS p99_ns, "
			"sum(duration_ns) AS total_ns, count(*) FILTER (duration_ns > 2 * usual) "
			"AS slow FROM (SELECT duration_ns, "
			"median(duration_ns) OVER () AS usual FROM " FACTS_STEPS_SQL ")" },
	{ "parts", "WITH p AS (SELECT coalesce(sum(data_ns), 0) AS d, coalesce(sum(forward_ns), 0) "
		   "AS f, coalesce(sum(backward_ns), "
		   "0) AS b, coalesce(sum(optimizer_ns), 0) AS o, sum(duration_ns) AS t "
		   "FROM " FACTS_STEPS_SQL ") SELECT name, ns FROM (SELECT 1 AS k, 'data' AS name, "
					   "d AS ns FROM p UNION ALL SELECT 2, 'forward', f FROM p "
		   "UNION ALL SELECT 3, 'backward', b FROM p UNION ALL SELECT 4, 'optimizer', o "
		   "FROM p UNION ALL SELECT 5, "
		   "'other', greatest(t - d - f - b - o, 0) FROM p WHERE d + f + b + o > 0) WHERE "
		   "ns > 0 ORDER BY k" },
	/* By the step first: an equal number is found at once among millions of zones, a stretch of
	   time is not. */
	{ "slowest", "WITH s AS (SELECT step, pid, start_ns, duration_ns FROM " FACTS_STEPS_SQL
		     " ORDER BY duration_ns DESC, step LIMIT 20), z AS (SELECT s.start_ns AS at, "
		     "arg_max(z.name, CASE WHEN "
		     "z.duration_ns >= s.duration_ns / 2 THEN s.duration_ns + z.depth ELSE "
		     "z.duration_ns END) AS inside, "
		     "arg_max(z.duration_ns, CASE WHEN z.duration_ns >= s.duration_ns / 2 THEN "
		     "s.duration_ns + z.depth ELSE "
		     "z.duration_ns END) AS inside_ns FROM s JOIN trace.zones z ON z.step = s.step "
		     "AND z.pid = s.pid AND z.start_ns >= "
		     "s.start_ns AND z.start_ns + z.duration_ns <= s.start_ns + s.duration_ns "
		     "GROUP BY 1) SELECT s.*, z.inside, "
		     "z.inside_ns FROM s LEFT JOIN z ON z.at = s.start_ns ORDER BY s.duration_ns "
		     "DESC, s.step" },
	{ "open", "SELECT coalesce(thread, 'tid ' || tid) AS thread, name, age_ns FROM "
		  "trace.open_zones ORDER BY pid, tid, depth LIMIT 40" },
	{ "counters", "SELECT name, count(*) AS count, avg(value) AS mean, "
		      "coalesce(stddev_samp(value), 0) AS std, min(value) AS min, "
		      "max(value) AS max, arg_max(value, ts_ns) AS last FROM trace.counters WHERE "
		      "isfinite(value) GROUP BY name "
		      "ORDER BY name LIMIT 500" },
	/* The model itself is the module without a dot that takes longest; it holds the others
	   without one. */
	{ "modules", "WITH m AS (SELECT module, count(*) FILTER (stage = 'forward') AS calls, "
		     "coalesce(sum(duration) FILTER "
		     "(stage = 'forward'), 0) * 1e9 AS forward_ns, coalesce(sum(duration) FILTER "
		     "(stage = 'backward'), 0) * 1e9 "
		     "AS backward_ns, coalesce(sum(duration) FILTER (stage = 'step'), 0) * 1e9 AS "
		     "step_ns, sum(duration) * 1e9 AS "
		     "total_ns, sum(self) * 1e9 AS self_ns, max(max_allocated) AS max_allocated, "
		     "sum(device_ns) AS device_ns FROM "
		     "python.torch_trace WHERE module <> '' GROUP BY 1), root AS (SELECT module "
		     "FROM m WHERE calls > 0 AND NOT "
		     "contains(module, '.') ORDER BY total_ns DESC LIMIT 1) SELECT * FROM (SELECT "
		     "*, CASE WHEN calls = 0 OR module IN "
		     "(SELECT module FROM root) THEN 0 ELSE len(module) - len(replace(module, '.', "
		     "'')) + 1 END AS depth FROM m) "
		     "ORDER BY calls = 0, depth > 0, module LIMIT 2000" },
	{ "queues", "SELECT device, queue, busy_ns, idle_ns, utilisation, overlap, ops, gaps, "
		    "longest_gap_ns, host_late_ns, sync_ns, dependency_ns, "
		    "launch_ns FROM device.queues ORDER BY device, core LIMIT 500" },
	{ "models", "SELECT model, device, core, executions, p50_ns, p99_ns, min_ns, max_ns, "
		    "total_ns FROM device.models LIMIT 500" },
	{ "launches", "SELECT name, kind, module, function, zone, count(*) AS ops, "
		      "median(duration_ns)::BIGINT AS p50_ns, sum(duration_ns)::BIGINT AS "
		      "total_ns FROM device.launches WHERE kind <> 'execution' GROUP BY ALL ORDER "
		      "BY total_ns DESC NULLS LAST, name, zone, function, module LIMIT 500" },
	{ "samples", "SELECT coalesce(thread, 'tid ' || tid) AS thread, stack, count(*) AS count "
		     "FROM python.samples WHERE "
		     "len(stack) > 0 GROUP BY ALL ORDER BY 3 DESC LIMIT 4000" },
	{ "sites", "SELECT coalesce(site, array_to_string(stack[1:3], ' < ')) AS site, "
		   "sum(at_peak_bytes) AS at_peak_bytes, sum(live_bytes) AS "
		   "live_bytes, sum(allocated_bytes) AS allocated_bytes, sum(count) AS count FROM "
		   "alloc.sites GROUP BY 1 ORDER BY "
		   "2 DESC LIMIT 200" },
	{ "allocated", ALLOCATIONS_PEAK_SQL },
	{ "growth", ALLOCATIONS_GROWTH_SQL },
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
	return tables_number(tables,
			     "SELECT count(*) FROM (SELECT duration_ns, median(duration_ns) OVER "
			     "() AS usual FROM " FACTS_STEPS_SQL ") WHERE duration_ns > 2 * usual",
			     0);
}

static void rate_text(double per_second, char *out, size_t bytes)
{
	if (per_second >= 1000)
		snprintf(out, bytes, "%s", format_count((uint64_t)per_second).text);
	else
		snprintf(out, bytes, "%.3g", per_second);
}

/* How busy what does the work was: a device where there is one. */
static void busy_figure(struct tables *tables, const struct facts *facts, struct figure *out)
{
	double busy = tables_number(
		tables,
		"SELECT max(busy_ns) / (SELECT duration_ns FROM kymo.runs) FROM device.queues", -1);

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

static void step_figures(struct tables *tables, const struct facts *facts, struct figure *out)
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
	busy_figure(tables, facts, &out[3]);
	memory_figure(facts, &out[4]);
	out[5] = (struct figure){ "Slow steps", "", "over 2 × median" };
	snprintf(out[5].value, sizeof(out[5].value), "%s",
		 format_count((uint64_t)slow_steps(tables)).text);
}

static void run_figures(struct tables *tables, const struct facts *facts, struct figure *out)
{
	out[0] = (struct figure){ "Run", "", "" };
	snprintf(out[0].value, sizeof(out[0].value), "%s",
		 format_clock(facts->duration_ns, true).text);
	snprintf(out[0].note, sizeof(out[0].note), "%s",
		 strncmp(facts->how, "gone", 4) ? facts->how : "gone");
	out[1] = (struct figure){ "Regions", "", "measured" };
	snprintf(out[1].value, sizeof(out[1].value), "%s", format_count(facts->region_all).text);
	out[2] = (struct figure){ "Zones", "", "" };
	snprintf(out[2].value, sizeof(out[2].value), "%s",
		 format_count(facts_rows_of(facts, "trace.zones").emitted).text);
	busy_figure(tables, facts, &out[3]);
	memory_figure(facts, &out[4]);
	out[5] = (struct figure){ "Threads", "", "that recorded" };
	snprintf(out[5].value, sizeof(out[5].value), "%.0f",
		 tables_number(tables, "SELECT count(*) FROM kymo.threads", 0));
}

static void write_figures(struct tables *tables, const struct facts *facts, FILE *out)
{
	struct figure figures[6];

	if (facts->steps.count)
		step_figures(tables, facts, figures);
	else
		run_figures(tables, facts, figures);
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

	fprintf(out, "\"%s\":", name);
	if (!rc)
		rc = output_json_write(result, &options, out, &count, err);
	tables_result_close(result);
	return rc;
}

static int write_series(struct tables *tables, FILE *out, struct kymo_error *err)
{
	struct buf sql = { 0 };
	int rc;

	add_series_sql(&sql);
	rc = sql.failed ? error_set(err, ENOMEM, "out of memory for the report's measurements")
			: write_block(tables, "series", buf_get(&sql), out, err);
	buf_fini(&sql);
	return rc;
}

int blocks_write(struct tables *tables, const struct facts *facts, FILE *out,
		 struct kymo_error *err)
{
	int rc = 0;

	write_verdicts(tables, facts, out);
	write_figures(tables, facts, out);
	write_memory(facts, out);
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]) && !rc; i++) {
		rc = write_block(tables, blocks[i].name, blocks[i].sql, out, err);
		fputc(',', out);
	}
	return rc ? rc : write_series(tables, out, err);
}

/* ---- of a stretch of time ------------------------------------------------------------------- */

/* Tables that those blocks ask, each with its time. */
static const struct {
	const char *table, *time;
} timed[] = {
	{ "trace.steps", "start_ns" },	   { "python.torch_trace", "ts_ns" },
	{ "python.samples", "ts_ns" },	   { "trace.counters", "ts_ns" },
	{ "device.launches", "start_ns" },
};

/* What is summed up in its table already is asked for by $from and $to. */
static const struct {
	const char *name, *sql; /* NULL: the block's own, with these tables cut */
	bool device; /* empty without one: who launched what is asked of all zones */
} ranged[] = {
	{ "steps", NULL, false },
	{ "step_facts", NULL, false },
	{ "parts", NULL, false },
	{ "slowest", NULL, false },
	{ "modules", NULL, false },
	{ "samples", NULL, false },
	{ "counters", NULL, false },
	{ "models", DEVICES_MODELS_WITHIN_SQL, false },
	{ "queues", DEVICES_QUEUES_WITHIN_SQL, true },
	{ "launches", NULL, true },
};

static void add_bounds(struct buf *sql, const char *text, int64_t from_ns, int64_t to_ns)
{
	while (*text) {
		if (!strncmp(text, "$from", 5)) {
			buf_print(sql, "%" PRId64, from_ns);
			text += 5;
		} else if (!strncmp(text, "$to", 3)) {
			buf_print(sql, "%" PRId64, to_ns);
			text += 3;
		} else {
			buf_char(sql, *text++);
		}
	}
}

/* The same query, with each of these tables cut to the stretch. */
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

int blocks_write_range(struct tables *tables, int64_t from_ns, int64_t to_ns, FILE *out,
		       struct kymo_error *err)
{
	bool device = tables_number(tables, "SELECT count(*) FROM device.ops", 0) > 0;
	int rc = 0;

	for (size_t i = 0; i < sizeof(ranged) / sizeof(ranged[0]) && !rc; i++) {
		struct buf sql = { 0 };

		fputc(',', out);
		if (ranged[i].device && !device) {
			fprintf(out, "\"%s\":[]", ranged[i].name);
			continue;
		}
		if (ranged[i].sql)
			add_bounds(&sql, ranged[i].sql, from_ns, to_ns);
		else
			add_within(&sql, find_block(ranged[i].name), from_ns, to_ns);
		rc = sql.failed ? error_set(err, ENOMEM, "out of memory for the stretch of time")
				: write_block(tables, ranged[i].name, buf_get(&sql), out, err);
		buf_fini(&sql);
	}
	return rc;
}
