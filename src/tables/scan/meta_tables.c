/* The tables of kymo_meta(): their columns and the functions that fill them. */
#include "tables/scan/meta.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/schema.h"

/* A number of rows, clamped: one beyond INT64_MAX is corrupt. */
static void meta_count(struct meta_cell *cell, uint64_t value)
{
	meta_number(cell, value <= INT64_MAX ? (int64_t)value : INT64_MAX);
}

/* ---- words ------------------------------------------------------------------------------- */

static const char *meta_tables_state_word(enum store_state state)
{
	static const char *const words[] = { [STORE_LIVE] = "live",
					     [STORE_ENDED] = "ended",
					     [STORE_KILLED] = "killed",
					     [STORE_LOST] = "lost",
					     [STORE_UNKNOWN] = "unknown" };

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

static bool is_of_run(const struct recording *recording, size_t process, size_t run)
{
	return recording->processes[process].run == run;
}

static const struct store_process *target_of(const struct recording *recording, size_t run)
{
	const struct store_process *all = recording->processes, *any = NULL;

	for (size_t i = 0; i < recording->process_count; i++)
		if (is_of_run(recording, i, run) && recording->runs[run].run.target_pid &&
		    all[i].pid == recording->runs[run].run.target_pid)
			return &all[i];
	for (size_t i = recording->process_count; i-- > 0;)
		if (is_of_run(recording, i, run) &&
		    (all[i].role == KYMO_ROLE_TARGET || !any || any->role != KYMO_ROLE_TARGET))
			any = &all[i];
	return any;
}

static const char *run_state(const struct store_run *run, const struct store_process *target)
{
	if (run->live)
		return "live";
	if (run->run.ended == 1)
		return WIFSIGNALED(run->run.target_wstatus) ? "killed" : "ended";
	if (run->run.ended)
		return run->run.ended == 3 ? "detached" : "ended";
	if (run->elsewhere)
		return "unknown";
	return target ? meta_tables_state_word(target->state) : NULL;
}

static void meta_tables_fill_run(struct meta_cell *cell, const struct store_run *of,
				 const struct store_process *target)
{
	const struct kymo_run_file *run = &of->run;
	bool by_target = run->ended != 1 && target && target->wstatus_known;

	if (run->epoch.realtime_ns)
		meta_count(&cell[0], run->epoch.realtime_ns);
	meta_text(&cell[1], of->program);
	meta_text(&cell[2], of->command);
	meta_host(&cell[3], of->host);
	meta_text(&cell[4], run->cwd);
	if (run->target_pid || target)
		meta_number(&cell[5], run->target_pid ? run->target_pid : target->pid);
	meta_text(&cell[6], run_state(of, target));
	fill_status(&cell[7], &cell[8], run->ended == 1 || by_target,
		    by_target ? target->wstatus : run->target_wstatus);
	meta_number(&cell[9], of->duration_ns);
	meta_text(&cell[10], keep_word(run->keep));
	meta_text(&cell[11], run->kymo_version);
	meta_text(&cell[12], clock_word(run->clock_kind));
	if (target)
		meta_count(&cell[13], target->clock.error_ns);
	meta_number(&cell[14], run->supervised != 0);
	meta_number(&cell[15], run->not_recorded);
	meta_text(&cell[16], of->path);
	meta_text_bytes(&cell[17], run->job, strnlen(run->job, sizeof(run->job)));
	meta_number(&cell[18], of->started_ns);
	if (of->age_ns >= 0)
		meta_number(&cell[19], of->age_ns);
}

static void fill_runs(struct meta_rows *rows, const struct tables *tables)
{
	for (size_t i = 0; i < tables->recording->run_count; i++)
		meta_tables_fill_run(meta_add(rows), &tables->recording->runs[i],
				     target_of(tables->recording, i));
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
		meta_text(&cell[7], meta_tables_state_word(process->state));
		fill_status(&cell[8], &cell[9], process->wstatus_known, process->wstatus);
		meta_number(&cell[10], process->started_ns);
		meta_number(&cell[11], process->ended_ns);
		meta_text(&cell[12], clock_word(process->clock.kind));
		meta_count(&cell[13], process->clock.error_ns);
		meta_count(&cell[14], process->control.names_full);
		meta_count(&cell[15], process->control.threads_full);
		meta_count(&cell[16], process->control.totals_full);
		meta_host(&cell[17], process->host);
		if (process->local_rank >= 0)
			meta_number(&cell[18], process->local_rank);
		if (process->attempt >= 0)
			meta_number(&cell[19], process->attempt);
		meta_number(&cell[20], (int64_t)i);
		/* The library's destructor ran: it was not killed. */
		meta_number(&cell[21], process->control.ended == 1);
	}
}

/* A row for each process and each piece of its host's clock. */
static void meta_tables_fill_clocks(struct meta_rows *rows, const struct tables *tables)
{
	static const char *const methods[] = { [STORE_ALIGN_SAME] = "same clock",
					       [STORE_ALIGN_FITTED] = "collectives",
					       [STORE_ALIGN_NONE] = "wall clock",
					       [STORE_ALIGN_REFUSED] = "refused" };
	const struct recording *recording = tables->recording;

	for (size_t i = 0; i < recording->process_count; i++)
		for (size_t k = 0; k < recording->host_clock_count; k++) {
			const struct store_host_clock *clock = &recording->host_clocks[k];
			struct meta_cell *cell;

			if (clock->domain != recording->processes[i].domain)
				continue;
			cell = meta_add(rows);
			meta_number(&cell[0], (int64_t)i);
			meta_number(&cell[1], clock->t0_ns);
			meta_number(&cell[2], clock->offset_ns);
			meta_real(&cell[3], clock->drift * 1e6);
			if (clock->error_ns >= 0)
				meta_number(&cell[4], clock->error_ns);
			meta_number(&cell[5], clock->used);
			meta_text(&cell[6], methods[clock->method]);
			meta_number(&cell[7], clock->applied);
			meta_text(&cell[8], clock->reason);
			meta_number(&cell[9], clock->domain);
		}
}

static void fill_process_of(struct meta_cell *pid, struct meta_cell *rank, struct meta_cell *host,
			    const struct store_process *process)
{
	meta_number(pid, process->pid);
	meta_host(host, process->host);
	if (process->rank >= 0)
		meta_number(rank, process->rank);
}

static void meta_tables_fill_threads(struct meta_rows *rows, const struct tables *tables)
{
	const struct recording *recording = tables->recording;

	for (size_t i = 1; i < recording->thread_count; i++) {
		const struct store_thread *thread = &recording->threads[i];
		struct meta_cell *cell = meta_add(rows);

		meta_number(&cell[0], (int64_t)i);
		if (thread->process < recording->process_count)
			fill_process_of(&cell[1], &cell[4], &cell[7],
					&recording->processes[thread->process]);
		meta_number(&cell[8], thread->process);
		meta_number(&cell[2], thread->tid);
		meta_text_bytes(&cell[3], thread->name,
				strnlen(thread->name, sizeof(thread->name)));
		meta_number(&cell[5], thread->started_ns);
		if (thread->ended_ns >= 0)
			meta_number(&cell[6], thread->ended_ns);
	}
}

/* For packed files: rows with an unknown thread still belong to a process. */
static void fill_all_threads(struct meta_rows *rows, const struct tables *tables)
{
	const struct recording *recording = tables->recording;

	meta_tables_fill_threads(rows, tables);
	for (size_t i = 0; i < recording->process_count; i++) {
		struct meta_cell *cell = meta_add(rows);

		meta_number(&cell[0], (int64_t)(recording->thread_count + i));
		fill_process_of(&cell[1], &cell[4], &cell[7], &recording->processes[i]);
		meta_number(&cell[8], (int64_t)i);
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
			fill_process_of(&cell[1], &cell[6 + KYMO_DROP_CAUSE_COUNT],
					&cell[7 + KYMO_DROP_CAUSE_COUNT],
					&recording->processes[stream->process]);
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
	/* The end of a lost process is not known, so neither is the age of the zone. */
	if (process->state != STORE_LOST)
		meta_number(&cell[5], process->ended_ns > zone->start_ns
					      ? process->ended_ns - zone->start_ns
					      : 0);
	meta_number(&cell[6], zone->depth);
	fill_process_of(&cell[7], &cell[10], &cell[15], process);
	if (zone->thread) {
		meta_number(&cell[8], thread->tid);
		meta_text_bytes(&cell[9], thread->name,
				strnlen(thread->name, sizeof(thread->name)));
	}
	meta_number(&cell[11], process->control.step);
	if (name->instance)
		meta_number(&cell[12], name->instance);
	if (zone->thread)
		meta_number(&cell[13], zone->thread);
	meta_number(&cell[14], zone->name);
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
	{ "job", META_TEXT },
	{ "started_ns", META_BIGINT },
	{ "age_ns", META_BIGINT },
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
	{ "totals_full", META_BIGINT }, { "host", META_TEXT },
	{ "local_rank", META_INTEGER }, { "attempt", META_INTEGER },
	{ "process_id", META_INTEGER }, { "finished", META_BOOLEAN },
};
static const struct meta_column thread_columns[] = {
	{ "thread_id", META_INTEGER }, { "pid", META_INTEGER },	 { "tid", META_INTEGER },
	{ "thread", META_TEXT },       { "rank", META_INTEGER }, { "started_ns", META_BIGINT },
	{ "ended_ns", META_BIGINT },   { "host", META_TEXT },	 { "process_id", META_INTEGER },
};
static const struct meta_column stream_columns[] = {
	{ "table_name", META_TEXT },
	{ "pid", META_INTEGER },
	{ "emitted", META_BIGINT },
	{ "kept", META_BIGINT },
	{ "overwritten", META_BIGINT },
	{ "dropped", META_BIGINT },
#define X(upper, lower, text) { "dropped_" #lower, META_BIGINT },
	KYMO_DROP_CAUSES(X)
#undef X
		{ "rank", META_INTEGER },
	{ "host", META_TEXT },
};
static const struct meta_column open_columns[] = {
	{ "source", META_TEXT },      { "name", META_TEXT },	     { "file", META_TEXT },
	{ "line", META_INTEGER },     { "start_ns", META_BIGINT },   { "age_ns", META_BIGINT },
	{ "depth", META_INTEGER },    { "pid", META_INTEGER },	     { "tid", META_INTEGER },
	{ "thread", META_TEXT },      { "rank", META_INTEGER },	     { "step", META_BIGINT },
	{ "instance", META_INTEGER }, { "thread_id", META_INTEGER }, { "name_id", META_INTEGER },
	{ "host", META_TEXT },
};
static const struct meta_column region_columns[] = {
	{ "source", META_TEXT },	{ "name", META_TEXT },	    { "count", META_BIGINT },
	{ "total_ns", META_BIGINT },	{ "self_ns", META_BIGINT }, { "min_ns", META_BIGINT },
	{ "max_ns", META_BIGINT },	{ "mean_ns", META_DOUBLE }, { "stddev_ns", META_DOUBLE },
	{ "p50_ns", META_BIGINT },	{ "p90_ns", META_BIGINT },  { "p99_ns", META_BIGINT },
	{ "open", META_BIGINT },	{ "pid", META_INTEGER },    { "instance", META_INTEGER },
	{ "own_cost_ns", META_BIGINT }, { "file", META_TEXT },	    { "line", META_INTEGER },
	{ "rank", META_INTEGER },	{ "host", META_TEXT },
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
	{ "task", META_TEXT },	   { "rank", META_INTEGER },	{ "host", META_TEXT },
};
static const struct meta_column clock_columns[] = {
	{ "process_id", META_BIGINT }, { "t0_ns", META_BIGINT },    { "offset_ns", META_BIGINT },
	{ "drift_ppm", META_DOUBLE },  { "error_ns", META_BIGINT }, { "collectives", META_BIGINT },
	{ "method", META_TEXT },       { "applied", META_BOOLEAN }, { "reason", META_TEXT },
	{ "clock", META_INTEGER },
};
static const struct meta_column problem_columns[] = { { "text", META_TEXT } };

#define TABLE(name, columns, fill) \
	{ \
		name, columns, sizeof(columns) / sizeof(columns[0]), fill \
	}

static const struct meta_table metas[] = {
	TABLE("runs", run_columns, fill_runs),
	TABLE("processes", process_columns, fill_processes),
	TABLE("threads", thread_columns, meta_tables_fill_threads),
	TABLE("all_threads", thread_columns, fill_all_threads),
	TABLE("streams", stream_columns, fill_streams),
	TABLE("open_zones", open_columns, fill_open_zones),
	TABLE("regions", region_columns, regions_fill),
	TABLE("overhead", overhead_columns, regions_fill_overhead),
	TABLE("names", name_columns, fill_names),
	TABLE("clocks", clock_columns, meta_tables_fill_clocks),
	TABLE("problems", problem_columns, fill_problems),
	TABLE("backtrace", backtrace_columns, backtrace_fill),
};

const struct meta_table *meta_find(const char *name)
{
	for (size_t i = 0; name && i < sizeof(metas) / sizeof(metas[0]); i++)
		if (!strcmp(metas[i].name, name))
			return &metas[i];
	return NULL;
}
