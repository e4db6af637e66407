#include "tables/meta.h"

#ifndef KYMO_NO_DUCKDB

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/schema.h"
#include "store/utf8.h"
#include "tables/scan.h"
#include "tables/words.h"

/* ---- rows -------------------------------------------------------------------------------- */

#define WIDTH_MAX 32u

struct meta_cell *meta_add(struct meta_rows *rows)
{
	static struct meta_cell scratch[WIDTH_MAX];
	struct meta_cell *cells;
	size_t room;

	if (!rows->failed && rows->count == rows->room) {
		room = rows->room ? rows->room * 2 : 64;
		cells = realloc(rows->cells, room * rows->width * sizeof(cells[0]));
		rows->failed = !cells;
		if (cells) {
			rows->cells = cells;
			rows->room = room;
		}
	}
	if (rows->failed)
		return scratch;
	cells = &rows->cells[rows->count++ * rows->width];
	memset(cells, 0, rows->width * sizeof(cells[0]));
	return cells;
}

void meta_number(struct meta_cell *cell, int64_t value)
{
	cell->known = true;
	cell->number = value;
}

void meta_real(struct meta_cell *cell, double value)
{
	cell->known = true;
	cell->real = value;
}

void meta_text_bytes(struct meta_cell *cell, const char *text, size_t bytes)
{
	cell->known = bytes > 0;
	cell->text = text;
	cell->text_bytes = bytes;
}

void meta_text(struct meta_cell *cell, const char *text)
{
	if (text)
		meta_text_bytes(cell, text, strlen(text));
}

/* A count of rows; what does not fit is not true anyway. */
static void meta_count(struct meta_cell *cell, uint64_t value)
{
	meta_number(cell, value <= INT64_MAX ? (int64_t)value : INT64_MAX);
}

/* ---- words ------------------------------------------------------------------------------- */

static const char *state_word(enum store_state state)
{
	static const char *const words[] = { [STORE_LIVE] = "live",
					     [STORE_ENDED] = "ended",
					     [STORE_KILLED] = "killed",
					     [STORE_LOST] = "lost" };

	return (unsigned)state < sizeof(words) / sizeof(words[0]) ? words[state] : "";
}

static const char *clock_word(uint32_t kind)
{
	static const char *const words[] = { [KYMO_CLOCK_TSC] = "tsc",
					     [KYMO_CLOCK_MONOTONIC] = "monotonic",
					     [KYMO_CLOCK_CNTVCT] = "cntvct" };

	return kind < sizeof(words) / sizeof(words[0]) ? words[kind] : NULL;
}

static const char *keep_word(uint32_t keep)
{
	return keep == KYMO_KEEP_ALL ? "all" : keep == KYMO_KEEP_FLIGHT ? "flight" : NULL;
}

static const char *signal_word(int number)
{
	static const char *const words[] = {
#define SIGNAL(name) [name] = #name
		SIGNAL(SIGHUP),	 SIGNAL(SIGINT),    SIGNAL(SIGQUIT), SIGNAL(SIGILL),
		SIGNAL(SIGTRAP), SIGNAL(SIGABRT),   SIGNAL(SIGBUS),  SIGNAL(SIGFPE),
		SIGNAL(SIGKILL), SIGNAL(SIGUSR1),   SIGNAL(SIGSEGV), SIGNAL(SIGUSR2),
		SIGNAL(SIGPIPE), SIGNAL(SIGALRM),   SIGNAL(SIGTERM), SIGNAL(SIGXCPU),
		SIGNAL(SIGXFSZ), SIGNAL(SIGVTALRM), SIGNAL(SIGPROF), SIGNAL(SIGIO),
		SIGNAL(SIGSYS),	 SIGNAL(SIGPWR),
#undef SIGNAL
	};
	const char *word = number > 0 && (size_t)number < sizeof(words) / sizeof(words[0])
				   ? words[number]
				   : NULL;

	return word ? word : "another signal";
}

static void fill_status(struct meta_cell *exit_code, struct meta_cell *signal_name, bool known,
			int status)
{
	if (known && WIFEXITED(status))
		meta_number(exit_code, WEXITSTATUS(status));
	if (known && WIFSIGNALED(status))
		meta_text(signal_name, signal_word(WTERMSIG(status)));
}

/* ---- the tables -------------------------------------------------------------------------- */

static const struct store_process *target_of(const struct recording *recording)
{
	for (size_t i = 0; i < recording->process_count; i++)
		if (recording->run.target_pid &&
		    recording->processes[i].pid == recording->run.target_pid)
			return &recording->processes[i];
	for (size_t i = 0; i < recording->process_count; i++)
		if (recording->processes[i].role == KYMO_ROLE_TARGET)
			return &recording->processes[i];
	return recording->process_count ? &recording->processes[0] : NULL;
}

static const char *run_state(const struct recording *recording, const struct store_process *target)
{
	if (recording->live)
		return "live";
	if (recording->run.ended == 1)
		return WIFSIGNALED(recording->run.target_wstatus) ? "killed" : "ended";
	if (recording->run.ended)
		return "ended";
	return target ? state_word(target->state) : NULL;
}

static void fill_runs(struct meta_rows *rows, const struct tables *tables)
{
	const struct recording *recording = tables->recording;
	const struct kymo_run_file *run = &recording->run;
	const struct store_process *target = target_of(recording);
	struct meta_cell *cell = meta_add(rows);
	bool by_target = run->ended != 1 && target && target->wstatus_known;

	if (run->epoch.realtime_ns)
		meta_count(&cell[0], run->epoch.realtime_ns);
	meta_text(&cell[1], recording->program);
	meta_text(&cell[2], recording->command);
	meta_text(&cell[3], run->host);
	meta_text(&cell[4], run->cwd);
	if (run->target_pid || target)
		meta_number(&cell[5], run->target_pid ? run->target_pid : target->pid);
	meta_text(&cell[6], run_state(recording, target));
	fill_status(&cell[7], &cell[8], run->ended == 1 || by_target,
		    by_target ? target->wstatus : run->target_wstatus);
	meta_number(&cell[9], recording->duration_ns);
	meta_text(&cell[10], keep_word(run->keep));
	meta_text(&cell[11], run->kymo_version);
	meta_text(&cell[12], clock_word(run->clock_kind));
	if (target)
		meta_count(&cell[13], target->clock.error_ns);
	meta_number(&cell[14], run->supervised != 0);
	meta_number(&cell[15], run->not_recorded);
	meta_text(&cell[16], recording->path);
}

static void fill_processes(struct meta_rows *rows, const struct tables *tables)
{
	static const char *const roles[] = { [KYMO_ROLE_TARGET] = "target",
					     [KYMO_ROLE_COLLECTOR] = "collector",
					     [KYMO_ROLE_COMMAND] = "command" };

	for (size_t i = 0; i < tables->recording->process_count; i++) {
		const struct store_process *process = &tables->recording->processes[i];
		struct meta_cell *cell = meta_add(rows);

		meta_number(&cell[0], process->pid);
		meta_number(&cell[1], process->ppid);
		meta_text(&cell[2], process->program);
		meta_text(&cell[3], process->command);
		if (process->rank >= 0)
			meta_number(&cell[4], process->rank);
		if (process->ranks >= 0)
			meta_number(&cell[5], process->ranks);
		meta_text(&cell[6], process->role < 3 ? roles[process->role] : "?");
		meta_text(&cell[7], state_word(process->state));
		fill_status(&cell[8], &cell[9], process->wstatus_known, process->wstatus);
		meta_number(&cell[10], process->started_ns);
		meta_number(&cell[11], process->ended_ns);
		meta_text(&cell[12], clock_word(process->clock.kind));
		meta_count(&cell[13], process->clock.error_ns);
		meta_count(&cell[14], process->control.names_full);
		meta_count(&cell[15], process->control.threads_full);
		meta_count(&cell[16], process->control.totals_full);
	}
}

static void fill_process_of(struct meta_cell *pid, struct meta_cell *rank,
			    const struct store_process *process)
{
	meta_number(pid, process->pid);
	if (process->rank >= 0)
		meta_number(rank, process->rank);
}

static void fill_threads(struct meta_rows *rows, const struct tables *tables)
{
	const struct recording *recording = tables->recording;

	for (size_t i = 1; i < recording->thread_count; i++) {
		const struct store_thread *thread = &recording->threads[i];
		struct meta_cell *cell = meta_add(rows);

		meta_number(&cell[0], (int64_t)i);
		if (thread->process < recording->process_count)
			fill_process_of(&cell[1], &cell[4], &recording->processes[thread->process]);
		meta_number(&cell[2], thread->tid);
		meta_text_bytes(&cell[3], thread->name,
				strnlen(thread->name, sizeof(thread->name)));
		meta_number(&cell[5], thread->started_ns);
		if (thread->ended_ns >= 0)
			meta_number(&cell[6], thread->ended_ns);
	}
}

/* For packed files: rows whose thread is not known still belong to a process. */
static void fill_all_threads(struct meta_rows *rows, const struct tables *tables)
{
	const struct recording *recording = tables->recording;

	fill_threads(rows, tables);
	for (size_t i = 0; i < recording->process_count; i++) {
		struct meta_cell *cell = meta_add(rows);

		meta_number(&cell[0], (int64_t)(recording->thread_count + i));
		fill_process_of(&cell[1], &cell[4], &recording->processes[i]);
	}
}

static void fill_streams(struct meta_rows *rows, const struct tables *tables)
{
	const struct recording *recording = tables->recording;

	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		struct meta_cell *cell = meta_add(rows);

		meta_text_bytes(&cell[0], stream->table,
				strnlen(stream->table, sizeof(stream->table)));
		if (stream->process < recording->process_count)
			meta_number(&cell[1], recording->processes[stream->process].pid);
		meta_count(&cell[2], stream->emitted);
		meta_count(&cell[3], stream->kept);
		meta_count(&cell[4], stream->overwritten);
		meta_count(&cell[5], stream->dropped_total);
		for (int k = 0; k < KYMO_DROP_CAUSE_COUNT; k++)
			meta_count(&cell[6 + k], stream->dropped[k]);
	}
}

static void fill_open_zone(struct meta_cell *cell, const struct recording *recording,
			   const struct store_process *process, const struct store_open_zone *zone)
{
	const struct store_name *name = &recording->names[zone->name];
	const struct store_thread *thread = &recording->threads[zone->thread];

	meta_text(&cell[0], schema_source_word(name->source));
	meta_text_bytes(&cell[1], name->text, name->text_bytes);
	meta_text_bytes(&cell[2], name->file, name->file_bytes);
	if (name->line)
		meta_number(&cell[3], name->line);
	meta_number(&cell[4], zone->start_ns);
	/* Nobody saw a lost process end: how long the zone was open is not known. */
	if (process->state != STORE_LOST)
		meta_number(&cell[5], process->ended_ns > zone->start_ns
					      ? process->ended_ns - zone->start_ns
					      : 0);
	meta_number(&cell[6], zone->depth);
	fill_process_of(&cell[7], &cell[10], process);
	if (zone->thread) {
		meta_number(&cell[8], thread->tid);
		meta_text_bytes(&cell[9], thread->name,
				strnlen(thread->name, sizeof(thread->name)));
	}
	meta_number(&cell[11], process->control.step);
	if (name->instance)
		meta_number(&cell[12], name->instance);
}

static void fill_open_zones(struct meta_rows *rows, const struct tables *tables)
{
	const struct recording *recording = tables->recording;

	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];

		for (size_t k = 0; k < stream->open_count; k++)
			if (stream->open_zones[k].name < recording->name_count &&
			    stream->open_zones[k].thread < recording->thread_count &&
			    stream->process < recording->process_count)
				fill_open_zone(meta_add(rows), recording,
					       &recording->processes[stream->process],
					       &stream->open_zones[k]);
	}
}

static void fill_names(struct meta_rows *rows, const struct tables *tables)
{
	for (size_t i = 0; i < tables->recording->name_count; i++) {
		const struct store_name *name = &tables->recording->names[i];
		struct meta_cell *cell = meta_add(rows);

		meta_number(&cell[0], (int64_t)i);
		if (!i)
			continue;
		meta_text(&cell[1], schema_source_word(name->source));
		meta_text_bytes(&cell[2], name->text, name->text_bytes);
		meta_text_bytes(&cell[3], name->file, name->file_bytes);
		if (name->line)
			meta_number(&cell[4], name->line);
		if (name->instance)
			meta_number(&cell[5], name->instance);
	}
}

static void fill_problems(struct meta_rows *rows, const struct tables *tables)
{
	const char *line = buf_get(&tables->shapes.problems), *end;

	for (size_t i = 0; i < tables->recording->problem_count; i++)
		meta_text(meta_add(rows), tables->recording->problems[i]);
	for (; (end = strchr(line, '\n')); line = end + 1)
		meta_text_bytes(meta_add(rows), line, (size_t)(end - line));
}

struct meta_column {
	const char *name;
	enum meta_type type;
};

static const struct meta_column run_columns[] = {
	{ "started_unix_ns", META_BIGINT },
	{ "program", META_TEXT },
	{ "command", META_TEXT },
	{ "host", META_TEXT },
	{ "cwd", META_TEXT },
	{ "pid", META_INTEGER },
	{ "state", META_TEXT },
	{ "exit_code", META_INTEGER },
	{ "signal", META_TEXT },
	{ "duration_ns", META_BIGINT },
	{ "kept", META_TEXT },
	{ "version", META_TEXT },
	{ "clock", META_TEXT },
	{ "clock_error_ns", META_BIGINT },
	{ "supervised", META_BOOLEAN },
	{ "not_recorded", META_BIGINT },
	{ "path", META_TEXT },
};
static const struct meta_column process_columns[] = {
	{ "pid", META_INTEGER },	{ "ppid", META_INTEGER },
	{ "program", META_TEXT },	{ "command", META_TEXT },
	{ "rank", META_INTEGER },	{ "ranks", META_INTEGER },
	{ "role", META_TEXT },		{ "state", META_TEXT },
	{ "exit_code", META_INTEGER },	{ "signal", META_TEXT },
	{ "started_ns", META_BIGINT },	{ "ended_ns", META_BIGINT },
	{ "clock", META_TEXT },		{ "clock_error_ns", META_BIGINT },
	{ "names_full", META_BIGINT },	{ "threads_full", META_BIGINT },
	{ "totals_full", META_BIGINT },
};
static const struct meta_column thread_columns[] = {
	{ "thread_id", META_INTEGER }, { "pid", META_INTEGER },	 { "tid", META_INTEGER },
	{ "thread", META_TEXT },       { "rank", META_INTEGER }, { "started_ns", META_BIGINT },
	{ "ended_ns", META_BIGINT },
};
static const struct meta_column stream_columns[] = {
	{ "table_name", META_TEXT }, { "pid", META_INTEGER },	     { "emitted", META_BIGINT },
	{ "kept", META_BIGINT },     { "overwritten", META_BIGINT }, { "dropped", META_BIGINT },
#define X(upper, lower, text) { "dropped_" #lower, META_BIGINT },
	KYMO_DROP_CAUSES(X)
#undef X
};
static const struct meta_column open_columns[] = {
	{ "source", META_TEXT },      { "name", META_TEXT },	   { "file", META_TEXT },
	{ "line", META_INTEGER },     { "start_ns", META_BIGINT }, { "age_ns", META_BIGINT },
	{ "depth", META_INTEGER },    { "pid", META_INTEGER },	   { "tid", META_INTEGER },
	{ "thread", META_TEXT },      { "rank", META_INTEGER },	   { "step", META_BIGINT },
	{ "instance", META_INTEGER },
};
static const struct meta_column region_columns[] = {
	{ "source", META_TEXT },	{ "name", META_TEXT },	    { "count", META_BIGINT },
	{ "total_ns", META_BIGINT },	{ "self_ns", META_BIGINT }, { "min_ns", META_BIGINT },
	{ "max_ns", META_BIGINT },	{ "mean_ns", META_DOUBLE }, { "stddev_ns", META_DOUBLE },
	{ "p50_ns", META_BIGINT },	{ "p90_ns", META_BIGINT },  { "p99_ns", META_BIGINT },
	{ "open", META_BIGINT },	{ "pid", META_INTEGER },    { "instance", META_INTEGER },
	{ "own_cost_ns", META_BIGINT }, { "file", META_TEXT },	    { "line", META_INTEGER },
};
static const struct meta_column overhead_columns[] = {
	{ "source", META_TEXT },
	{ "events", META_BIGINT },
	{ "cost_ns_per_event", META_DOUBLE },
	{ "total_ns", META_BIGINT },
	{ "pct", META_DOUBLE },
};
static const struct meta_column name_columns[] = {
	{ "name_id", META_INTEGER }, { "source", META_TEXT },  { "name", META_TEXT },
	{ "file", META_TEXT },	     { "line", META_INTEGER }, { "instance", META_INTEGER },
};
static const struct meta_column backtrace_columns[] = {
	{ "pid", META_INTEGER },   { "tid", META_INTEGER },	{ "thread", META_TEXT },
	{ "func", META_TEXT },	   { "file", META_TEXT },	{ "lineno", META_INTEGER },
	{ "depth", META_INTEGER }, { "frame_type", META_TEXT }, { "age_ns", META_BIGINT },
	{ "task", META_TEXT },
};
static const struct meta_column problem_columns[] = { { "text", META_TEXT } };

#define TABLE(name, columns, fill) \
	{ \
		name, columns, sizeof(columns) / sizeof(columns[0]), fill \
	}

static const struct meta_table {
	const char *name;
	const struct meta_column *columns;
	size_t column_count;
	void (*fill)(struct meta_rows *rows, const struct tables *tables);
} metas[] = {
	TABLE("runs", run_columns, fill_runs),
	TABLE("processes", process_columns, fill_processes),
	TABLE("threads", thread_columns, fill_threads),
	TABLE("all_threads", thread_columns, fill_all_threads),
	TABLE("streams", stream_columns, fill_streams),
	TABLE("open_zones", open_columns, fill_open_zones),
	TABLE("regions", region_columns, regions_fill),
	TABLE("overhead", overhead_columns, regions_fill_overhead),
	TABLE("names", name_columns, fill_names),
	TABLE("problems", problem_columns, fill_problems),
	TABLE("backtrace", backtrace_columns, backtrace_fill),
};

/* ---- the table function ------------------------------------------------------------------ */

static const duckdb_type types[] = {
	[META_INTEGER] = DUCKDB_TYPE_INTEGER, [META_BIGINT] = DUCKDB_TYPE_BIGINT,
	[META_DOUBLE] = DUCKDB_TYPE_DOUBLE,   [META_TEXT] = DUCKDB_TYPE_VARCHAR,
	[META_BOOLEAN] = DUCKDB_TYPE_BOOLEAN,
};

static const struct meta_table *find_meta(const char *name)
{
	for (size_t i = 0; name && i < sizeof(metas) / sizeof(metas[0]); i++)
		if (!strcmp(metas[i].name, name))
			return &metas[i];
	return NULL;
}

static void bind_meta(duckdb_bind_info info, const struct meta_table *meta)
{
	duckdb_logical_type type;

	for (size_t i = 0; i < meta->column_count; i++) {
		type = duck.create_logical_type(types[meta->columns[i].type]);
		duck.bind_add_result_column(info, meta->columns[i].name, type);
		duck.destroy_logical_type(&type);
	}
	duck.bind_set_bind_data(info, (void *)meta, NULL);
}

static void meta_bind(duckdb_bind_info info)
{
	duckdb_value value = duck.bind_get_parameter(info, 0);
	char *name = value ? duck.get_varchar(value) : NULL;
	const struct meta_table *meta = find_meta(name);

	if (meta)
		bind_meta(info, meta);
	else
		duck.bind_set_error(
			info,
			"kymo_meta: there is no such table; use those of schema kymo and trace");
	if (name)
		duck.free(name);
	if (value)
		duck.destroy_value(&value);
}

struct meta_run {
	const struct meta_table *meta;
	struct meta_rows rows;
	size_t next;
	size_t column_count;
	idx_t columns[WIDTH_MAX];
};

static void run_destroy(void *data)
{
	struct meta_run *run = data;

	if (run && run->rows.release)
		run->rows.release(run->rows.kept);
	if (run)
		free(run->rows.cells);
	free(run);
}

static void meta_init(duckdb_init_info info)
{
	struct meta_run *run = calloc(1, sizeof(*run));

	if (run) {
		run->meta = duck.init_get_bind_data(info);
		run->rows.width = run->meta->column_count;
		run->meta->fill(&run->rows, duck.init_get_extra_info(info));
		run->column_count = duck.init_get_column_count(info);
	}
	if (!run || run->rows.failed || run->column_count > WIDTH_MAX) {
		run_destroy(run);
		duck.init_set_error(info, "kymo_meta: no memory");
		return;
	}
	for (size_t i = 0; i < run->column_count; i++)
		run->columns[i] = duck.init_get_column_index(info, i);
	duck.init_set_init_data(info, run, run_destroy);
}

static void emit_text(duckdb_vector vector, idx_t row, const struct meta_cell *cell)
{
	char *whole;
	size_t bytes;

	if (words_valid(cell->text, cell->text_bytes)) {
		duck.vector_assign_string_element_len(vector, row, cell->text, cell->text_bytes);
		return;
	}
	whole = malloc(WORDS_REPAIRED_BYTES(cell->text_bytes));
	bytes = whole ? utf8_repair(cell->text, cell->text_bytes, whole,
				    WORDS_REPAIRED_BYTES(cell->text_bytes))
		      : 0;
	duck.vector_assign_string_element_len(vector, row, whole ? whole : "", bytes);
	free(whole);
}

static void emit_cell(duckdb_vector vector, enum meta_type type, idx_t row,
		      const struct meta_cell *cell)
{
	void *data = duck.vector_get_data(vector);

	if (!cell->known) {
		duck.vector_ensure_validity_writable(vector);
		duck.vector_get_validity(vector)[row / 64] &= ~(1ull << (row % 64));
		return;
	}
	switch (type) {
	case META_INTEGER: ((int32_t *)data)[row] = (int32_t)cell->number; break;
	case META_BIGINT: ((int64_t *)data)[row] = cell->number; break;
	case META_DOUBLE: ((double *)data)[row] = cell->real; break;
	case META_BOOLEAN: ((bool *)data)[row] = cell->number != 0; break;
	case META_TEXT: emit_text(vector, row, cell); break;
	}
}

static void emit_column(const struct meta_run *run, size_t at, size_t count, duckdb_vector vector)
{
	idx_t column = run->columns[at];

	if (column >= run->meta->column_count)
		return;
	for (size_t i = 0; i < count; i++)
		emit_cell(vector, run->meta->columns[column].type, i,
			  &run->rows.cells[(run->next + i) * run->rows.width + column]);
}

static void meta_function(duckdb_function_info info, duckdb_data_chunk output)
{
	struct meta_run *run = duck.function_get_init_data(info);
	size_t count = run->rows.count - run->next;

	if (count > duck.vector_size())
		count = duck.vector_size();
	for (size_t i = 0; i < run->column_count; i++)
		emit_column(run, i, count, duck.data_chunk_get_vector(output, i));
	run->next += count;
	duck.data_chunk_set_size(output, count);
}

int meta_register(struct tables *tables, duckdb_connection connection, struct kymo_error *err)
{
	duckdb_table_function function = duck.create_table_function();
	duckdb_logical_type text = duck.create_logical_type(DUCKDB_TYPE_VARCHAR);
	duckdb_state state;

	duck.table_function_set_name(function, "kymo_meta");
	duck.table_function_add_parameter(function, text);
	duck.table_function_set_extra_info(function, tables, NULL);
	duck.table_function_set_bind(function, meta_bind);
	duck.table_function_set_init(function, meta_init);
	duck.table_function_set_function(function, meta_function);
	duck.table_function_supports_projection_pushdown(function, true);
	state = duck.register_table_function(connection, function);
	duck.destroy_table_function(&function);
	duck.destroy_logical_type(&text);
	if (state == DuckDBError)
		return error_set(err, EIO, "DuckDB does not take the table function kymo_meta");
	return 0;
}

#endif
