/* The processes of a run: their control pages, their states, then all their files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "store/alive.h"
#include "store/job.h"
#include "store/recording_inside.h"
#include "base/utf8.h"

#define RANKS_MOST (1 << 20) /* of a job; numbers beyond are not counted */

/* ---- control pages ----------------------------------------------------------------------- */

static void end_text(char *text, size_t bytes)
{
	text[bytes - 1] = '\0';
}

static void end_texts(struct kymo_control *control)
{
	end_text(control->program, sizeof(control->program));
	end_text(control->argv, sizeof(control->argv) - 1);
	end_text(control->argv, sizeof(control->argv));
	end_text(control->exe, sizeof(control->exe));
	for (size_t i = 0; i < KYMO_TABLES_MAX; i++)
		end_text(control->lost[i].table, sizeof(control->lost[i].table));
}

/* Its rows are readable without it: the directory's name identifies the process. */
static void make_up_control(struct recording *recording, const struct run_files_process *name,
			    struct kymo_control *control)
{
	memset(control, 0, sizeof(*control));
	control->pid = name->pid;
	control->starttime = name->starttime;
	control->rank = control->ranks = -1;
	control->clock_kind = recording->run.clock_kind ? recording->run.clock_kind
							: KYMO_CLOCK_TSC;
}

static bool control_is_sound(const struct kymo_control *control)
{
	return control->clock_kind >= KYMO_CLOCK_TSC && control->clock_kind <= KYMO_CLOCK_CNTVCT &&
	       control->pid > 0;
}

static void open_process_read_control(struct recording *recording, const char *directory,
				      const struct run_files_process *name,
				      struct kymo_control *control)
{
	struct readat file = READAT_NONE;
	struct kymo_error err = { 0 };
	char path[RUN_FILES_PATH_BYTES * 2];
	int rc;

	snprintf(path, sizeof(path), "%s/control", directory);
	rc = run_files_file(&inside_of(recording)->source, path, &file, &err);
	if (!rc)
		rc = readat_head(&file, KYMO_MAGIC_CONTROL, control, sizeof(*control), path, &err);
	if (!rc && !control_is_sound(control))
		rc = error_set(&err, EPROTO, "%s is damaged", path);
	readat_close(&file);
	if (rc) {
		inside_say(recording, "%s; its rows are read without it", err.text);
		make_up_control(recording, name, control);
	}
	end_texts(control);
}

/* ---- state ------------------------------------------------------------------------------- */

static enum store_state state_of_status(int32_t wstatus)
{
	return WIFSIGNALED(wstatus) ? STORE_KILLED : STORE_ENDED;
}

enum store_state open_process_state(const struct kymo_control *control,
				    const struct kymo_run_file *run, bool may_live)
{
	if (control->wstatus_known)
		return state_of_status(control->wstatus);
	if (run && run->ended == 1 && run->target_pid == control->pid &&
	    run->target_starttime == control->starttime)
		return state_of_status(run->target_wstatus);
	if (control->ended)
		return STORE_ENDED;
	if (may_live && alive_process(control->pid, control->starttime, control->pid_namespace))
		return STORE_LIVE;
	return run && !run->ended &&
			       (alive_elsewhere(run->boot_id, run->host) ||
				(may_live && alive_hidden(control->pid_namespace)))
		       ? STORE_UNKNOWN
		       : STORE_LOST;
}

void open_process_ranks(struct recording *recording)
{
	int32_t ranks = -1;

	for (size_t i = 0; i < recording->process_count && ranks < 0; i++)
		if (recording->processes[i].control.rank_source == KYMO_RANK_TORCH)
			ranks = recording->processes[i].ranks;
	for (size_t i = 0; ranks >= 0 && i < recording->process_count; i++) {
		struct store_process *process = &recording->processes[i];

		if (process->control.rank_source == KYMO_RANK_LAUNCHER && process->ranks != ranks)
			process->rank = process->ranks = process->local_rank = -1;
	}
}

/* The processes of a run are neighbours. */
const struct store_process *store_target(const struct recording *recording, size_t collector,
					 int32_t pid)
{
	const struct store_process *found = NULL, *all = recording->processes;
	size_t first = collector;

	while (first && all[first - 1].run == all[collector].run)
		first--;
	for (size_t i = first; i < recording->process_count && all[i].run == all[collector].run;
	     i++)
		if (all[i].pid == pid)
			found = &all[i];
	return found;
}

int32_t store_target_rank(const struct recording *recording, size_t collector, int32_t pid)
{
	const struct store_process *target = store_target(recording, collector, pid);

	return target && target->rank >= 0 ? target->rank : recording->processes[collector].rank;
}

/* Steps of each rank; a restarted rank has several processes. NULL: no ranks. */
static int64_t *steps_by_rank(const struct recording *recording, struct job_ranks *out)
{
	int32_t most = -1;
	int64_t *steps;

	for (size_t i = 0; i < recording->process_count; i++)
		if (recording->processes[i].role == KYMO_ROLE_TARGET &&
		    recording->processes[i].rank > most &&
		    recording->processes[i].rank < RANKS_MOST)
			most = recording->processes[i].rank;
	steps = most < 0 ? NULL : malloc(((size_t)most + 1) * sizeof(*steps));
	for (int32_t i = 0; steps && i <= most; i++)
		steps[i] = -1;
	for (size_t i = 0; steps && i < recording->process_count; i++) {
		const struct store_process *process = &recording->processes[i];

		if (process->role != KYMO_ROLE_TARGET || process->rank < 0 || process->rank > most)
			continue;
		out->recorded += steps[process->rank] < 0;
		out->rank = out->recorded == 1 ? process->rank : -1;
		out->ranks = process->ranks;
		steps[process->rank] = 0;
	}
	return steps;
}

void job_ranks(const struct recording *recording, struct job_ranks *out)
{
	int64_t *steps;

	*out = (struct job_ranks){ .rank = -1, .ranks = -1 };
	steps = steps_by_rank(recording, out);
	for (size_t i = 0; i < recording->stream_count; i++) {
		const struct store_stream *stream = &recording->streams[i];
		const struct store_process *process = &recording->processes[stream->process];
		int64_t *sum = &out->steps;

		if (strcmp(stream->table, "trace.steps") != 0)
			continue;
		if (steps && process->role == KYMO_ROLE_TARGET && process->rank >= 0 &&
		    process->rank < RANKS_MOST)
			sum = &steps[process->rank];
		*sum += (int64_t)stream->emitted;
		if (*sum > out->steps)
			out->steps = *sum;
	}
	free(steps);
}

/* In a snapshot: the state when it was written. */
static enum store_state state_in_snapshot(const struct recording *recording, const char *directory,
					  const struct kymo_control *control)
{
	char path[RUN_FILES_PATH_BYTES * 2];
	const struct kymo_snapshot_entry *entry;
	enum store_state state = open_process_state(control, &recording->run, false);

	if (state == STORE_UNKNOWN)
		state = STORE_LOST;
	snprintf(path, sizeof(path), "%s/control", directory);
	entry = run_files_entry(&inside_of(recording)->source, path);
	return state == STORE_LOST && entry && entry->was_running ? STORE_LIVE : state;
}

static void set_state(struct recording *recording, struct store_process *process,
		      const char *directory)
{
	const struct kymo_run_file *run = &recording->run;
	const struct kymo_control *control = &process->control;
	const struct inside *inside = inside_of(recording);

	process->wstatus_known = control->wstatus_known == 1;
	process->wstatus = control->wstatus;
	if (!process->wstatus_known && run->ended == 1 && run->target_pid == control->pid &&
	    run->target_starttime == control->starttime) {
		process->wstatus_known = true;
		process->wstatus = run->target_wstatus;
	}
	process->state = run_files_is_snapshot(&inside->source)
				 ? state_in_snapshot(recording, directory, control)
				 : open_process_state(control, run,
						      inside->same_boot && !inside->source.blobs);
}

/* A program that replaced itself by exec continues under the same pid: the earlier ones have
   ended. */
static void end_earlier_life(struct recording *recording, const struct run_files_process *name)
{
	for (size_t i = 0; i + 1 < recording->process_count; i++) {
		struct store_process *earlier = &recording->processes[i];

		if (name->life > 1 && earlier->control.pid == name->pid &&
		    earlier->control.starttime == name->starttime && earlier->state != STORE_KILLED)
			earlier->state = STORE_ENDED;
	}
}

/* ---- texts ------------------------------------------------------------------------------- */

static bool open_process_is_plain(const char *word)
{
	return *word &&
	       !word[strspn(
		       word,
		       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%")];
}

static void open_process_add_quoted(struct buf *line, const char *word)
{
	if (open_process_is_plain(word)) {
		buf_text(line, word);
		return;
	}
	buf_char(line, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			buf_text(line, "'\\''");
		else
			buf_char(line, *word);
	}
	buf_char(line, '\'');
}

char *open_process_command(struct recording *recording, const char *argv, size_t argv_bytes)
{
	struct buf line = { 0 };
	size_t bytes;
	char *out;

	for (size_t at = 0; at < argv_bytes && argv[at]; at += strlen(argv + at) + 1) {
		if (at)
			buf_char(&line, ' ');
		open_process_add_quoted(&line, argv + at);
	}
	bytes = utf8_repaired_bytes(buf_get(&line), strlen(buf_get(&line))) + 1;
	out = arena_take(&inside_of(recording)->arena, bytes);
	if (out)
		utf8_repair(buf_get(&line), strlen(buf_get(&line)), out, bytes);
	else
		inside_of(recording)->no_memory = true;
	buf_fini(&line);
	return out;
}

/* ---- the two steps ----------------------------------------------------------------------- */

static void open_process_add_process(struct recording *recording, const char *directory)
{
	struct inside *inside = inside_of(recording);
	struct store_process *processes = inside_grow(recording, recording->processes,
						      recording->process_count,
						      &inside->process_room, sizeof(*processes));
	struct store_process *process;
	struct run_files_process name = { 0 };

	if (!processes)
		return;
	recording->processes = processes;
	process = &processes[recording->process_count++];
	memset(process, 0, sizeof(*process));
	run_files_is_process(directory, &name);
	open_process_read_control(recording, directory, &name, &process->control);
	process->pid = process->control.pid;
	process->ppid = process->control.ppid;
	process->rank = process->control.rank;
	process->ranks = process->control.ranks;
	process->local_rank = (int32_t)(process->control.local_rank_plus_1 & INT32_MAX) - 1;
	process->attempt = (int32_t)(process->control.attempt_plus_1 & INT32_MAX) - 1;
	process->host = "";
	process->role = process->control.role;
	utf8_repair(process->control.program, strlen(process->control.program), process->program,
		    sizeof(process->program));
	process->command = open_process_command(recording, process->control.argv,
						sizeof(process->control.argv));
	set_state(recording, process, directory);
	end_earlier_life(recording, &name);
}

void open_process_controls(struct recording *recording)
{
	struct run_files_list list = { 0 };

	if (run_files_processes(&inside_of(recording)->source, &list))
		inside_say(recording, "the processes of %s cannot be listed; some may be missing",
			   recording->path);
	for (size_t i = 0; i < list.count; i++)
		open_process_add_process(recording, list.items[i].name);
	run_files_list_free(&list);
}

static int64_t last_pair_ns(const struct store_process *process)
{
	int64_t latest = process->started_ns;

	for (uint32_t i = 0; i < KYMO_CLOCK_PAIRS && i < process->control.pair_count; i++)
		if (process->control.pairs[i].ticks &&
		    store_clock_ns(&process->clock, process->control.pairs[i].ticks) > latest)
			latest = store_clock_ns(&process->clock, process->control.pairs[i].ticks);
	return latest;
}

/* Before the streams, which may contain later moments. */
static void open_process_set_times(struct recording *recording, struct store_process *process)
{
	const struct inside *inside = inside_of(recording);

	process->started_ns = process->control.pairs[0].ticks
				      ? store_clock_ns(&process->clock,
						       process->control.pairs[0].ticks)
				      : 0;
	process->ended_ns = last_pair_ns(process);
	if (process->control.ended_ticks)
		process->ended_ns = store_clock_ns(&process->clock, process->control.ended_ticks);
	if (process->ended_ns > inside->latest_ns)
		process->ended_ns = process->started_ns;
}

static int64_t open_process_now_ns(const struct recording *recording,
				   const struct store_process *process)
{
	const struct inside *inside = inside_of(recording);

	if (run_files_is_snapshot(&inside->source))
		return store_clock_ns(&process->clock, inside->source.snapshot_head.taken_ticks);
	return (int64_t)(clock_shared_ns() - recording->run.epoch.monotonic_ns);
}

/* The memory that it records into: that of a process in another container may not be reachable
   here, and the directory on disk then has what its collector copied last. */
static bool is_reachable(const struct recording *recording)
{
	const struct inside *inside = inside_of(recording);

	return recording->kind != STORE_DIRECTORY || !recording->run.peer[0] ||
	       inside->source.blobs || inside->source.dirs[1] >= 0;
}

void open_process_contents(struct recording *recording)
{
	struct run_files_list list = { 0 };

	run_files_processes(&inside_of(recording)->source, &list);
	for (size_t i = 0; i < list.count && i < recording->process_count; i++) {
		size_t first_copy = inside_of(recording)->copy_count;
		const char *directory = list.items[i].name;

		open_process_set_times(recording, &recording->processes[i]);
		open_stream_copy(recording, (uint32_t)i, directory);
		/* After the rows: a name or thread is published before the row that uses it. */
		open_names_read(recording, (uint32_t)i, directory);
		open_names_threads(recording, (uint32_t)i, directory);
		open_stream_describe(recording, (uint32_t)i, first_copy);
		if (recording->processes[i].state == STORE_LIVE && is_reachable(recording))
			recording->processes[i].ended_ns = open_process_now_ns(
				recording, &recording->processes[i]);
	}
	run_files_list_free(&list);
}
