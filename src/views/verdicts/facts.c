#include "views/verdicts/facts.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/hist.h"
#include "base/schema.h"
#include "tables/sql_fill.h"
#include "views/query/rows.h"
#include "views_sql.h"

/* ---- the run -------------------------------------------------------------------------------- */

static const struct facts nothing = { .rank = -1,
				      .ranks = -1,
				      .exit_code = -1,
				      .memory = { .cpu_pct = -1 },
				      .overhead_pct = -1,
				      .collector_pct = -1,
				      .sampler_pct = -1 };

static void describe_end(struct facts *out, const char *state, double exit_code,
			 const char *signal_name)
{
	out->live = !strcmp(state, "live");
	out->exit_code = exit_code;
	snprintf(out->signal, sizeof(out->signal), "%s", signal_name);
	if (out->live)
		snprintf(out->how, sizeof(out->how), "live");
	else if (signal_name[0])
		snprintf(out->how, sizeof(out->how), "killed by %s", signal_name);
	else if (exit_code >= 0)
		snprintf(out->how, sizeof(out->how), "exit %.0f", exit_code);
	else
		snprintf(out->how, sizeof(out->how), "%s",
			 !strcmp(state, "lost")	      ? "end not observed"
			 : !strcmp(state, "detached") ? "detached, program continued"
						      : state);
}

static int facts_run_row(const struct rows *rows, void *context)
{
	struct facts *out = context;
	char state[16], signal_name[24], clock[24];

	rows_copy_text(rows, 0, out->program, sizeof(out->program));
	out->duration_ns = rows_number(rows, 1, 0);
	out->pid = (int32_t)rows_number(rows, 2, 0);
	rows_copy_text(rows, 3, state, sizeof(state));
	rows_copy_text(rows, 5, signal_name, sizeof(signal_name));
	describe_end(out, state, rows_number(rows, 4, -1), signal_name);
	rows_copy_text(rows, 6, clock, sizeof(clock));
	if (clock[0])
		snprintf(out->clock, sizeof(out->clock), "%s",
			 strcmp(clock, "tsc") ? clock : "TSC");
	out->clock_error_ns = rows_number(rows, 7, -1);
	out->imported = rows_number(rows, 8, 0) > 0;
	if (out->imported)
		snprintf(out->how, sizeof(out->how), "imported");
	return 0;
}

static int facts_process_row(const struct rows *rows, void *context)
{
	struct facts *out = context;

	out->rank = (int32_t)rows_number(rows, 0, -1);
	out->ranks = (int32_t)rows_number(rows, 1, -1);
	out->process_count = rows_count(rows, 2);
	return 0;
}

static void describe_end_of_run(const struct recording *recording, struct facts *out)
{
	bool known = recording->run.ended == 1;
	int status = recording->run.target_wstatus;
	const char *word = known && WIFSIGNALED(status) ? sigabbrev_np(WTERMSIG(status)) : NULL;
	char signal_name[24] = "";

	if (word)
		snprintf(signal_name, sizeof(signal_name), "SIG%s", word);
	describe_end(out,
		     recording->live		 ? "live"
		     : recording->run.ended == 3 ? "detached"
						 : "ended",
		     known && WIFEXITED(status) ? WEXITSTATUS(status) : -1, signal_name);
}

/* Only what a summary without SQL needs. */
static void describe_run(const struct recording *recording, struct facts *out)
{
	snprintf(out->program, sizeof(out->program), "%s", recording->program);
	out->duration_ns = (double)recording->duration_ns;
	out->pid = recording->run.target_pid;
	describe_end_of_run(recording, out);
}

/* ---- rows of each table --------------------------------------------------------------------- */

static struct facts_rows *table_row(struct facts *out, const char *table)
{
	for (size_t i = 0; i < out->table_count; i++)
		if (!strcmp(out->tables[i].table, table))
			return &out->tables[i];
	if (out->table_count == FACTS_TABLES)
		return &out->tables[FACTS_TABLES - 1];
	snprintf(out->tables[out->table_count].table, sizeof(out->tables[0].table), "%s", table);
	return &out->tables[out->table_count++];
}

static void facts_add_rows(struct facts *out, const struct facts_rows *rows)
{
	struct facts_rows *into[] = { table_row(out, rows->table), &out->total };

	for (size_t i = 0; i < 2; i++) {
		into[i]->emitted += rows->emitted;
		into[i]->kept += rows->kept;
		into[i]->overwritten += rows->overwritten;
		into[i]->dropped += rows->dropped;
	}
}

struct facts_rows facts_rows_of(const struct facts *facts, const char *table)
{
	for (size_t i = 0; i < facts->table_count; i++)
		if (!strcmp(facts->tables[i].table, table))
			return facts->tables[i];
	return (struct facts_rows){ .emitted = 0 };
}

static int stream_row(const struct rows *rows, void *context)
{
	struct facts_rows one = { .emitted = rows_count(rows, 1),
				  .kept = rows_count(rows, 2),
				  .overwritten = rows_count(rows, 3),
				  .dropped = rows_count(rows, 4) };

	rows_copy_text(rows, 0, one.table, sizeof(one.table));
	facts_add_rows(context, &one);
	return 0;
}

static void store_rows(const struct recording *recording, struct facts *out)
{
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		struct facts_rows one = { .emitted = stream->emitted,
					  .kept = stream->kept,
					  .overwritten = stream->overwritten,
					  .dropped = stream->dropped_total };

		snprintf(one.table, sizeof(one.table), "%s", stream->table);
		facts_add_rows(out, &one);
		out->open_zones += stream->open_count;
	}
}

/* ---- regions -------------------------------------------------------------------------------- */

static int facts_region_row(const struct rows *rows, void *context)
{
	struct facts *out = context;
	struct facts_region *region = &out->regions[out->region_count];

	if (out->region_count == FACTS_REGIONS)
		return 0;
	region->name = rows_take_text(rows, 0);
	rows_copy_text(rows, 1, region->source, sizeof(region->source));
	region->count = rows_count(rows, 2);
	region->self_ns = rows_number(rows, 3, 0);
	region->total_ns = rows_number(rows, 4, 0);
	region->p50_ns = rows_number(rows, 5, -1);
	region->p99_ns = rows_number(rows, 6, -1);
	out->region_all = rows_count(rows, 7);
	region->own_cost_ns = rows_number(rows, 8, 0);
	region->import = rows_number(rows, 9, 0) > 0;
	out->region_count += region->name != NULL;
	return region->name ? 0 : -ENOMEM;
}

static int facts_function_row(const struct rows *rows, void *context)
{
	struct facts *out = context;
	struct facts_function *function = &out->functions[out->function_count];

	if (out->function_count == FACTS_FUNCTIONS)
		return 0;
	rows_copy_text(rows, 0, function->name, sizeof(function->name));
	function->samples = rows_count(rows, 1);
	function->time = rows_number(rows, 2, 0);
	function->running = rows_number(rows, 3, 0);
	out->function_samples = rows_count(rows, 4);
	out->function_time = rows_number(rows, 5, 0);
	function->total = rows_number(rows, 6, -1);
	rows_copy_text(rows, 7, function->source, sizeof(function->source));
	out->function_count++;
	return 0;
}

static int gc_row(const struct rows *rows, void *context)
{
	struct facts *out = context;

	out->gc_count = rows_count(rows, 0);
	out->gc_ns = rows_number(rows, 1, 0);
	return 0;
}

/* A sum over all streams; index of names is the key. */
struct region_sum {
	uint32_t name;
	uint64_t count;
	double self_ns, total_ns;
	int64_t min_ns, max_ns;
	uint64_t *histogram; /* in ticks of the first process that had one; NULL: none */
	const struct store_clock *clock;
};

static void add_total(struct region_sum *sum, const struct store_total *total,
		      const struct store_clock *clock)
{
	double total_ns = (double)store_clock_span_ns(clock, total->sum_ticks);
	int64_t min_ns = store_clock_span_ns(clock, total->min_ticks);
	int64_t max_ns = store_clock_span_ns(clock, total->max_ticks);

	if (!total->count)
		return;
	sum->min_ns = !sum->count || min_ns < sum->min_ns ? min_ns : sum->min_ns;
	sum->max_ns = max_ns > sum->max_ns ? max_ns : sum->max_ns;
	sum->count += total->count;
	sum->total_ns += total_ns;
	sum->self_ns += total_ns - (double)store_clock_span_ns(clock, total->child_ticks);
	if (!total->histogram)
		return;
	if (!sum->histogram) {
		sum->histogram = calloc(KYMO_HIST_BUCKETS, sizeof(*sum->histogram));
		sum->clock = clock;
	}
	for (size_t i = 0; sum->histogram && i < KYMO_HIST_BUCKETS; i++)
		sum->histogram[i] += total->histogram[i];
}

static double facts_quantile_ns(const struct region_sum *sum, double share)
{
	if (!sum->histogram)
		return -1;
	return (double)hist_quantile(sum->histogram, share, store_clock_tick_ns(sum->clock),
				     sum->min_ns, sum->max_ns);
}

static int facts_by_self(const void *a, const void *b)
{
	const struct region_sum *left = a, *right = b;

	return left->self_ns < right->self_ns ? 1 : left->self_ns > right->self_ns ? -1 : 0;
}

const char *facts_place(const char *file)
{
	static const char init[] = "/__init__.py";
	size_t bytes = strlen(file), end = bytes;

	if (bytes >= sizeof(init) - 1 && !strcmp(file + bytes - (sizeof(init) - 1), init))
		end = bytes - (sizeof(init) - 1);
	while (end && file[end - 1] != '/')
		end--;
	return file + end;
}

/* Another Python function of the same name, in another file. */
static bool has_namesake(const struct recording *recording, const struct region_sum *sums,
			 const struct store_name *name)
{
	if (name->source != KYMO_SOURCE_PYTHON || !name->file || !name->file[0])
		return false;
	for (size_t i = 0; i < recording->name_count && sums[i].count; i++) {
		const struct store_name *other = &recording->names[sums[i].name];

		if (other->source == name->source && other->file && other->file[0] &&
		    !strcmp(other->text, name->text) && strcmp(other->file, name->file) != 0)
			return true;
	}
	return false;
}

/* As sql/parts/region_label.sql and regions.sql. */
static char *take_label(const struct recording *recording, const struct region_sum *sums,
			const struct store_name *name)
{
	size_t bytes = strlen(name->text), digits = 0;
	char *label = NULL;

	if (has_namesake(recording, sums, name))
		return asprintf(&label, "%s (%s)", name->text, facts_place(name->file)) < 0 ? NULL
											    : label;
	while (digits < bytes && isdigit((unsigned char)name->text[bytes - 1 - digits]))
		digits++;
	if (name->source != KYMO_SOURCE_TORCH || !digits || !name->file || !name->file[0] ||
	    (digits < bytes && name->text[bytes - 1 - digits] != '.'))
		return strdup(name->text);
	return asprintf(&label, "%s (%s)", name->text, name->file) < 0 ? NULL : label;
}

static int take_regions(const struct recording *recording, const struct region_sum *sums,
			struct facts *out)
{
	for (size_t i = 0;
	     i < recording->name_count && sums[i].count && out->region_count < FACTS_REGIONS; i++) {
		struct facts_region *region = &out->regions[out->region_count];
		const struct store_name *name = &recording->names[sums[i].name];

		region->name = take_label(recording, sums, name);
		if (!region->name)
			return -ENOMEM;
		snprintf(region->source, sizeof(region->source), "%s",
			 schema_source_word(name->source));
		region->import = name->file && strstr(name->file, FACTS_IMPORT_FILE);
		region->count = sums[i].count;
		region->self_ns = sums[i].self_ns;
		region->total_ns = sums[i].total_ns;
		region->p50_ns = facts_quantile_ns(&sums[i], 0.5);
		region->p99_ns = facts_quantile_ns(&sums[i], 0.99);
		if (name->line && strchr(name->file, '/'))
			snprintf(region->place, sizeof(region->place), "%.200s (%.180s:%u)",
				 name->text, name->file, name->line);
		out->region_count++;
	}
	return 0;
}

static void take_gc(struct region_sum *sum, struct facts *out)
{
	out->gc_count += sum->count;
	out->gc_ns += sum->self_ns;
	sum->count = 0;
	sum->self_ns = 0;
}

static int store_regions(const struct recording *recording, struct facts *out)
{
	struct region_sum *sums = calloc(recording->name_count + 1, sizeof(*sums));
	int rc;

	if (!sums)
		return -ENOMEM;
	for (uint32_t i = 0; i < recording->name_count; i++)
		sums[i].name = i;
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];

		for (size_t j = 0; j < stream->total_count; j++)
			if (stream->totals[j].name < recording->name_count)
				add_total(&sums[stream->totals[j].name], &stream->totals[j],
					  &recording->processes[stream->process].clock);
	}
	for (size_t i = 0; i < recording->name_count; i++) {
		if (!strncmp(recording->names[i].text, FACTS_GC, strlen(FACTS_GC)))
			take_gc(&sums[i], out);
		out->region_all += sums[i].count > 0;
	}
	qsort(sums, recording->name_count, sizeof(*sums), facts_by_self);
	rc = take_regions(recording, sums, out);
	for (size_t i = 0; i < recording->name_count; i++)
		free(sums[i].histogram);
	free(sums);
	return rc;
}

/* ---- steps, memory -------------------------------------------------------------------------- */

static int steps_row(const struct rows *rows, void *context)
{
	struct facts_steps *steps = &((struct facts *)context)->steps;

	steps->count = rows_count(rows, 0);
	steps->median_ns = rows_number(rows, 1, 0);
	steps->p99_ns = rows_number(rows, 2, 0);
	steps->least_ns = rows_number(rows, 3, 0);
	steps->most_ns = rows_number(rows, 4, 0);
	steps->total_ns = rows_number(rows, 5, 0);
	steps->first_ns = rows_number(rows, 6, 0);
	steps->last_ns = rows_number(rows, 7, 0);
	rows_copy_text(rows, 8, steps->name, sizeof(steps->name));
	for (size_t i = 0; i < KYMO_PHASE_COUNT; i++)
		steps->phase_ns[i] = rows_number(rows, 9 + i, 0);
	return 0;
}

static int spark_row(const struct rows *rows, void *context)
{
	struct facts_steps *steps = &((struct facts *)context)->steps;
	double part = rows_number(rows, 0, -1);

	if (part >= 0 && part < FACTS_SPARK)
		steps->spark_ns[(size_t)part] = rows_number(rows, 1, -1);
	return 0;
}

/* kymo.record("batch_size", 32), once or in every step. */
static int batch_row(const struct rows *rows, void *context)
{
	struct facts_steps *steps = &((struct facts *)context)->steps;

	steps->batch = rows_number(rows, 0, 0);
	rows_copy_text(rows, 1, steps->batch_unit, sizeof(steps->batch_unit));
	return 0;
}

static int gather_spark(struct tables *tables, struct facts *out, struct kymo_error *err)
{
	struct facts_steps *steps = &out->steps;
	uint64_t parts = steps->count < FACTS_SPARK ? steps->count : FACTS_SPARK;
	struct buf sql = { 0 };
	int rc;

	for (size_t i = 0; i < FACTS_SPARK; i++)
		steps->spark_ns[i] = -1;
	if (steps->count < FACTS_SPARK_LEAST)
		return 0;
	sql_fill(&sql, sql_facts_spark,
		 (struct sql_value[]){ { "parts", .number = (int64_t)parts },
				       { "steps", .number = (int64_t)steps->count },
				       { NULL } });
	rc = rows_each(tables, buf_get(&sql), spark_row, out, err);
	buf_fini(&sql);
	return rc;
}

static int facts_memory_row(const struct rows *rows, void *context)
{
	struct facts_memory *memory = &((struct facts *)context)->memory;

	memory->peak_bytes = rows_number(rows, 0, 0);
	memory->peak_at_ns = rows_number(rows, 1, 0);
	memory->last_bytes = rows_number(rows, 2, 0);
	memory->last_at_ns = rows_number(rows, 3, 0);
	memory->cpu_pct = rows_number(rows, 4, -1);
	memory->samples = rows_count(rows, 5);
	memory->early_bytes = rows_number(rows, 6, 0);
	memory->early_at_ns = rows_number(rows, 7, 0);
	memory->processes = rows_count(rows, 8);
	return 1;
}

static const struct store_column *find_column(const struct store_stream *stream, const char *name,
					      uint32_t type)
{
	for (uint32_t i = 0; i < stream->column_count; i++)
		if (!strcmp(stream->columns[i].name, name) && stream->columns[i].type == type)
			return &stream->columns[i];
	return NULL;
}

static void add_memory(struct facts_memory *memory, double bytes, double peak_bytes, double at_ns)
{
	memory->samples++;
	memory->last_bytes = bytes;
	memory->last_at_ns = at_ns;
	if (peak_bytes < bytes)
		peak_bytes = bytes;
	if (peak_bytes <= memory->peak_bytes)
		return;
	memory->peak_bytes = peak_bytes;
	memory->peak_at_ns = at_ns;
}

/* The program's rows of host.process. store_open() has checked that columns lie inside the row. */
static void stream_memory(const struct recording *recording, const struct store_stream *stream,
			  struct facts *out)
{
	const struct store_column *ts = find_column(stream, "ts_ns", KYMO_TIME);
	const struct store_column *rss = find_column(stream, "rss_bytes", KYMO_U64);
	const struct store_column *peak = find_column(stream, "family_peak_bytes", KYMO_U64);
	const struct store_column *pid = find_column(stream, "target_pid", KYMO_I32);
	unsigned char row[KYMO_ROW_BYTES_MAX];
	uint64_t ticks, bytes, peak_bytes = 0;
	int32_t owner;

	if (!ts || !rss || !pid || stream->row_bytes > sizeof(row))
		return;
	for (size_t i = 0; i < stream->chunk_count; i++) {
		for (uint64_t at = 0; at < stream->chunks[i].rows; at++) {
			if (store_read_rows(stream, &stream->chunks[i], at, 1, row) != 1)
				break;
			memcpy(&ticks, row + ts->offset, sizeof(ticks));
			memcpy(&bytes, row + rss->offset, sizeof(bytes));
			memcpy(&owner, row + pid->offset, sizeof(owner));
			if (peak)
				memcpy(&peak_bytes, row + peak->offset, sizeof(peak_bytes));
			if (owner == recording->run.target_pid)
				add_memory(&out->memory, (double)bytes, (double)peak_bytes,
					   (double)store_clock_ns(
						   &recording->processes[stream->process].clock,
						   ticks));
		}
	}
}

static void store_memory(const struct recording *recording, struct facts *out)
{
	for (size_t i = 0; i < recording->stream_count; i++)
		if (!strcmp(recording->streams[i].table, "host.process"))
			stream_memory(recording, &recording->streams[i], out);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static const struct {
	const char *sql;
	int (*each)(const struct rows *rows, void *context);
} queries[] = {
	{ "SELECT program, duration_ns, pid, state, exit_code, signal, clock, clock_error_ns, "
	  "EXISTS (FROM kymo.imports) FROM kymo.runs",
	  facts_run_row },
	{ sql_facts_process, facts_process_row },
	{ sql_facts_streams, stream_row },
	{ sql_facts_regions, facts_region_row },
	{ sql_facts_functions, facts_function_row },
	{ "SELECT sum(count), sum(self_ns) FROM trace.regions WHERE starts_with(name, '" FACTS_GC
	  "')",
	  gc_row },
	{ sql_facts_steps, steps_row },
	{ sql_facts_batch, batch_row },
	{ sql_facts_memory, facts_memory_row },
};

/* All steps of the main loop. Rows of other loops and processes are not its losses. */
static uint64_t steps_ever(const struct facts *facts)
{
	struct facts_rows rows = facts_rows_of(facts, "trace.steps");

	return rows.emitted == rows.kept && facts->steps.count ? facts->steps.count : rows.emitted;
}

/* The state of a snapshot or a capture stays "live": it does not contain the end of the program. */
static void describe_file(const struct tables *tables, struct facts *out)
{
	const struct recording *recording = tables_recording(tables);

	/* A packed file has no recording; its state is that of the recording it was made from. */
	out->saved = recording ? recording->kind == STORE_SNAPSHOT : out->live;
	if (!out->live || (recording && recording->kind == STORE_DIRECTORY))
		return;
	out->live = false;
	snprintf(out->how, sizeof(out->how), "captured while it ran");
}

int facts_gather(struct tables *tables, struct facts *out, struct kymo_error *err)
{
	int rc = 0;

	*out = nothing;
	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]) && rc >= 0; i++)
		rc = rows_each(tables, queries[i].sql, queries[i].each, out, err);
	if (rc >= 0)
		rc = facts_quantiles(tables, out, err);
	if (rc >= 0)
		rc = gather_spark(tables, out, err);
	if (rc < 0)
		return rc;
	describe_file(tables, out);
	out->steps.ever = steps_ever(out);
	out->overhead_pct = tables_number(tables,
					  "SELECT coalesce(sum(pct), 0) FROM kymo.overhead WHERE "
					  "source NOT IN ('collector', 'sampler', 'native')",
					  -1);
	out->collector_pct = tables_number(
		tables, "SELECT sum(pct) FROM kymo.overhead WHERE source = 'collector'", -1);
	out->sampler_pct = tables_number(
		tables, "SELECT sum(pct) FROM kymo.overhead WHERE source = 'sampler'", -1);
	return 0;
}

/* The cost of zones, by the cost of one zone measured at start-up. */
static void store_overhead(const struct recording *recording, struct facts *out)
{
	double cost_ns = 0;

	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		const struct store_process *process = &recording->processes[stream->process];

		if (!strcmp(stream->table, "trace.zones"))
			cost_ns += (double)stream->emitted *
				   (double)store_clock_span_ns(&process->clock,
							       process->control.own_cost_ticks);
	}
	if (recording->duration_ns > 0)
		out->overhead_pct = 100 * cost_ns / (double)recording->duration_ns;
}

int facts_from_store(const struct recording *recording, struct facts *out, struct kymo_error *err)
{
	*out = nothing;
	describe_run(recording, out);
	store_rows(recording, out);
	store_overhead(recording, out);
	store_memory(recording, out);
	facts_store_functions(recording, out);
	out->steps.ever = facts_rows_of(out, "trace.steps").emitted;
	if (store_regions(recording, out))
		return error_set(err, ENOMEM, "out of memory while summing up %s", recording->path);
	return 0;
}

void facts_fini(struct facts *facts)
{
	for (size_t i = 0; i < FACTS_REGIONS; i++)
		free(facts->regions[i].name);
}
