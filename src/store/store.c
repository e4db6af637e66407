#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/snapshot_format.h"
#include "base/grow.h"
#include "store/alive.h"
#include "store/clockmap.h"
#include "store/host_clocks.h"
#include "store/job.h"
#include "store/lake/lake_dir.h"
#include "store/recording_inside.h"
#include "base/utf8.h"

#define HELD_FILES 16384 /* further segments are opened for each read, and may be gone by then */
#define DAY_NS (INT64_C(86400) * 1000000000)

/* ---- kinds of recordings ----------------------------------------------------------------- */

/* A directory is a recording if it has a file `run` or a process's directory. */
static enum store_kind kind_of_directory(const char *path, struct kymo_error *err)
{
	struct run_files source;
	struct run_files_list list = { 0 };
	struct kymo_run_file run;
	struct readat file = READAT_NONE;
	char label[KYMO_PATH_BYTES + 8], magic[8];
	int rc = run_files_open(&source, path, err);
	bool has_run = false;

	if (rc)
		return STORE_NONE;
	snprintf(label, sizeof(label), "%s/run", path);
	/* Other programs use the name `run`, too: without the magic it is not a recording. */
	if (!run_files_file(&source, "run", &file, NULL))
		has_run = readat_all(&file, 0, magic, sizeof(magic)) &&
			  !memcmp(magic, KYMO_MAGIC_RUN, sizeof(magic));
	if (has_run)
		rc = readat_head(&file, KYMO_MAGIC_RUN, &run, sizeof(run), label, err);
	if (!has_run || rc) {
		run_files_processes(&source, &list);
		if (list.count)
			rc = 0; /* possibly damaged, but a recording */
		else if (!has_run)
			rc = error_set(err, ENOENT,
				       "%s is not a kymo recording: it has neither a file `run` "
				       "nor a process directory; `kymo ls` lists recordings",
				       path);
	}
	run_files_list_free(&list);
	readat_close(&file);
	run_files_close(&source);
	return rc ? STORE_NONE : STORE_DIRECTORY;
}

static enum store_kind kind_of_file(int fd, const char *path, struct kymo_error *err)
{
	const struct readat file = { .fd = fd, .whole = true };
	struct kymo_snapshot_head head;
	char begin[64] = "";
	size_t bytes = readat_copy(&file, 0, begin, sizeof(begin));

	if (bytes >= 12 && !memcmp(begin + 8, "DUCK", 4))
		return STORE_PACKED;
	if (bytes >= 8 && !memcmp(begin, KYMO_MAGIC_SNAPSHOT, 8))
		return readat_head(&file, KYMO_MAGIC_SNAPSHOT, &head, sizeof(head), path, err)
			       ? STORE_NONE
			       : STORE_SNAPSHOT;
	if (lake_is_job(begin, bytes))
		return STORE_LAKE;
	if (bytes >= 4 && !memcmp(begin, "KYMO", 4))
		error_set(err, EINVAL,
			  "%s is a single file of a recording; name the directory of the run",
			  path);
	else
		error_set(err, EINVAL,
			  "%s is not a kymo recording: it is neither a snapshot nor a packed file "
			  "(%s)",
			  path, bytes ? "unknown file type" : "it is empty");
	return STORE_NONE;
}

enum store_kind store_kind(const char *path, struct kymo_error *err)
{
	enum store_kind kind = STORE_NONE;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0) {
		error_set(err, errno, "cannot open the recording %s: %s", path, strerror(errno));
		return STORE_NONE;
	}
	if (fstat(fd, &st))
		error_set(err, errno, "cannot stat %s: %s", path, strerror(errno));
	else if (S_ISDIR(st.st_mode))
		kind = job_is(fd) ? STORE_JOB : kind_of_directory(path, err);
	else if (S_ISREG(st.st_mode))
		kind = kind_of_file(fd, path, err);
	else
		error_set(err, EINVAL, "%s is neither a directory nor a regular file", path);
	close(fd);
	return kind;
}

/* ---- problems and memory ----------------------------------------------------------------- */

void inside_say(struct recording *recording, const char *format, ...)
{
	struct inside *inside = inside_of(recording);
	char *sentence = NULL;
	va_list args;

	recording->partial = true;
	if (recording->problem_count >= INSIDE_PROBLEMS_MAX) {
		inside->unsaid++;
		return;
	}
	va_start(args, format);
	if (vasprintf(&sentence, format, args) < 0)
		sentence = NULL;
	va_end(args);
	if (!sentence || !grow_short((void **)&recording->problems, recording->problem_count,
				     sizeof(*recording->problems))) {
		free(sentence);
		inside->no_memory = true;
		return;
	}
	/* A sentence may quote text of a file. */
	for (char *at = sentence; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			*at = '?';
	recording->problems[recording->problem_count++] = sentence;
}

void inside_hear(void *recording, const char *sentence)
{
	inside_say(recording, "%s", sentence);
}

void inside_end_problems(struct recording *recording)
{
	struct inside *inside = inside_of(recording);
	char *sentence = NULL;

	if (inside->unsaid &&
	    grow_short((void **)&recording->problems, recording->problem_count,
		       sizeof(*recording->problems)) &&
	    asprintf(&sentence, "and %zu more of the same kind", inside->unsaid) >= 0)
		recording->problems[recording->problem_count++] = sentence;
}

void *inside_grow(struct recording *recording, void *items, size_t count, size_t *room,
		  size_t item_bytes)
{
	if (grow(&items, room, count, item_bytes))
		return items;
	inside_of(recording)->no_memory = true;
	return NULL;
}

/* ---- the run file ------------------------------------------------------------------------ */

static void end_run_texts(struct kymo_run_file *run)
{
	run->kymo_version[sizeof(run->kymo_version) - 1] = '\0';
	run->host[sizeof(run->host) - 1] = '\0';
	run->boot_id[sizeof(run->boot_id) - 1] = '\0';
	run->peer[sizeof(run->peer) - 1] = '\0';
	run->program[sizeof(run->program) - 1] = '\0';
	run->argv[sizeof(run->argv) - 2] = run->argv[sizeof(run->argv) - 1] = '\0';
	run->cwd[sizeof(run->cwd) - 1] = '\0';
	run->name[sizeof(run->name) - 1] = '\0';
}

static bool run_is_sound(const struct kymo_run_file *run)
{
	return run->clock_kind >= KYMO_CLOCK_TSC && run->clock_kind <= KYMO_CLOCK_CNTVCT &&
	       run->epoch.monotonic_ns;
}

/* False: none that is valid; it is reconstructed later. */
static bool store_read_run(struct recording *recording)
{
	struct kymo_run_file *run = &recording->run;
	struct readat file = READAT_NONE;
	struct kymo_error err = { 0 };
	int rc = run_files_file(&inside_of(recording)->source, "run", &file, &err);

	if (!rc)
		rc = readat_head(&file, KYMO_MAGIC_RUN, run, sizeof(*run), "the file `run`", &err);
	if (!rc && !run_is_sound(run))
		rc = error_set(&err, EPROTO, "the file `run` is damaged");
	readat_close(&file);
	if (rc) {
		memset(run, 0, sizeof(*run));
		inside_say(recording, "%s; its contents are taken from a process instead",
			   err.text);
	}
	end_run_texts(run);
	return !rc;
}

/* The first process of the recorded program, else any. */
static const struct store_process *first_process(const struct recording *recording)
{
	const struct store_process *first = NULL;

	for (size_t i = 0; i < recording->process_count; i++) {
		const struct store_process *process = &recording->processes[i];

		if (!first || process->role < first->role ||
		    (process->role == first->role &&
		     process->control.pairs[0].monotonic_ns < first->control.pairs[0].monotonic_ns))
			first = process;
	}
	return first;
}

static void make_up_run(struct recording *recording)
{
	struct kymo_run_file *run = &recording->run;
	const struct store_process *process = first_process(recording);

	if (!process)
		return;
	run->clock_kind = process->control.clock_kind;
	run->epoch = process->control.pairs[0];
	for (size_t i = 0; i < recording->process_count; i++) {
		const struct kymo_clock_pair *pair = &recording->processes[i].control.pairs[0];

		if (pair->monotonic_ns &&
		    (!run->epoch.monotonic_ns || pair->monotonic_ns < run->epoch.monotonic_ns))
			run->epoch = *pair;
	}
	run->target_pid = process->pid;
	run->target_starttime = process->control.starttime;
	run->keep = process->control.keep;
	memcpy(run->program, process->control.program, sizeof(run->program));
	memcpy(run->argv, process->control.argv, sizeof(run->argv));
}

/* ---- opening ----------------------------------------------------------------------------- */

/* Segments of a chain are held open; the usual default limit of 1,024 files is too low for that. */
static size_t files_to_hold(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	if (limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur / 2 > HELD_FILES)
		return HELD_FILES;
	return (size_t)(limit.rlim_cur / 2);
}

static uint64_t group_limit_bytes(void)
{
	char text[32] = "";
	FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
	uint64_t limit = file && fgets(text, sizeof(text), file) ? strtoull(text, NULL, 10) : 0;

	if (file)
		fclose(file);
	return limit ? limit : UINT64_MAX; /* "max": none */
}

/* Half of the memory that there is: a recording that needs more is read in part, which is said. */
static uint64_t room_for_copies(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t least = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
	struct rlimit limit;

	if (group_limit_bytes() < least)
		least = group_limit_bytes();
	if (!getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < least)
		least = limit.rlim_cur;
	return least / 2;
}

/* A run that has ended has all its pairs: a current one would change the times at every read. */
static bool is_over(const struct recording *recording)
{
	for (size_t i = 0; i < recording->process_count; i++)
		if (recording->processes[i].state == STORE_LIVE)
			return false;
	return recording->run.ended && recording->run.end.ticks;
}

/* A pair of this moment, if the counters here are those of the recording. A snapshot has its
   own. */
static const struct kymo_clock_pair *take_now(const struct recording *recording)
{
	struct inside *inside = inside_of(recording);
	const struct kymo_snapshot_head *taken = &inside->source.snapshot_head;

	if (taken->taken_ticks && taken->taken_monotonic_ns) {
		inside->now.ticks = taken->taken_ticks;
		inside->now.monotonic_ns = taken->taken_monotonic_ns;
		inside->now.realtime_ns = taken->taken_realtime_ns;
		return &inside->now;
	}
	if (!inside->same_boot || kymo__slow_clock || is_over(recording))
		return NULL;
	clock_take_pair(&inside->now);
	return &inside->now;
}

/* Later times are impossible, hence damage. */
static int64_t latest_possible(const struct recording *recording)
{
	const struct inside *inside = inside_of(recording);
	const struct kymo_run_file *run = &recording->run;
	int64_t latest = 0;

	if (inside->same_boot)
		return (int64_t)(clock_shared_ns() - run->epoch.monotonic_ns);
	if (inside->now.monotonic_ns > run->epoch.monotonic_ns)
		return (int64_t)(inside->now.monotonic_ns - run->epoch.monotonic_ns);
	if (run->ended && run->ended_realtime_ns > run->epoch.realtime_ns)
		return (int64_t)(run->ended_realtime_ns - run->epoch.realtime_ns) + 1000000000;
	for (size_t i = 0; i < recording->process_count; i++) {
		const struct store_process *process = &recording->processes[i];
		struct kymo_clock_pair first, last;
		bool nonsense;

		clockmap_pairs(&process->control, &first, &last, &nonsense);
		if (last.ticks && store_clock_ns(&process->clock, last.ticks) > latest)
			latest = store_clock_ns(&process->clock, last.ticks);
	}
	return latest > INT64_MAX - DAY_NS ? INT64_MAX : latest + DAY_NS;
}

/* The end of the program, which the last rows of its collector are after; INT64_MAX: not known. */
static int64_t end_of_program(const struct recording *recording)
{
	const struct kymo_run_file *run = &recording->run;

	if (!run->ended || !run->end.ticks || run->end.monotonic_ns <= run->epoch.monotonic_ns)
		return INT64_MAX;
	return (int64_t)(run->end.monotonic_ns - run->epoch.monotonic_ns);
}

static void store_sum_up(struct recording *recording)
{
	const struct kymo_run_file *run = &recording->run;

	for (size_t i = 0; i < recording->process_count; i++) {
		const struct store_process *process = &recording->processes[i];
		int64_t most_ns = process->role == KYMO_ROLE_TARGET ? INT64_MAX
								    : end_of_program(recording);
		int64_t ended_ns = process->ended_ns < most_ns ? process->ended_ns : most_ns;

		if (ended_ns > recording->duration_ns)
			recording->duration_ns = ended_ns;
		if (process->state == STORE_LIVE && recording->kind == STORE_DIRECTORY)
			recording->live = true;
	}
	if (run->ended && run->ended_realtime_ns > run->epoch.realtime_ns &&
	    !recording->duration_ns)
		recording->duration_ns = (int64_t)(run->ended_realtime_ns - run->epoch.realtime_ns);
	utf8_repair(run->program, strlen(run->program), recording->program,
		    sizeof(recording->program));
	recording->command = open_process_command(recording, run->argv, sizeof(run->argv));
	if (inside_of(recording)->source.refused_entries)
		inside_say(recording,
			   "the snapshot's table of contents is damaged: %zu entries are skipped",
			   inside_of(recording)->source.refused_entries);
	for (size_t i = 0; i < recording->process_count; i++)
		if (recording->processes[i].control.names_full)
			inside_say(recording,
				   "process %d: %llu names did not fit the name table; their zones "
				   "have no name",
				   recording->processes[i].pid,
				   (unsigned long long)recording->processes[i].control.names_full);
}

/* Its own clock and ours may differ by some seconds. */
static int64_t age_of_data(const struct recording *recording, const struct store_run *run)
{
	int64_t now = (int64_t)clock_realtime_ns();
	int64_t last = (int64_t)run->run.epoch.realtime_ns + recording->duration_ns;

	if (recording->kind != STORE_DIRECTORY || !run->run.epoch.realtime_ns ||
	    (!recording->live && !run->elsewhere))
		return -1;
	return now > last ? now - last : 0;
}

/* The only run of a recording that is not a job. */
static void add_own_run(struct recording *recording)
{
	struct store_run *own = calloc(1, sizeof(*own));

	if (!own) {
		inside_of(recording)->no_memory = true;
		return;
	}
	memcpy(own->path, recording->path, sizeof(own->path));
	memcpy(own->program, recording->program, sizeof(own->program));
	own->run = recording->run;
	utf8_repair(own->run.host, strlen(own->run.host), own->host, sizeof(own->host));
	own->command = recording->command;
	own->duration_ns = recording->duration_ns;
	own->live = recording->live;
	recording->runs = own;
	recording->run_count = 1;
	for (size_t i = 0; i < recording->process_count; i++) {
		recording->processes[i].host = own->host;
		own->elsewhere |= recording->processes[i].state == STORE_UNKNOWN;
	}
	own->elsewhere |= recording->kind == STORE_DIRECTORY && !recording->live &&
			  !own->run.ended && alive_elsewhere(own->run.boot_id, own->run.host);
	own->age_ns = age_of_data(recording, own);
}

/* Index 0 of both lists is "unknown". */
void inside_begin_lists(struct recording *recording)
{
	struct inside *inside = inside_of(recording);
	const struct store_name no_name = { .text = "", .file = "" };

	recording->names = inside_grow(recording, NULL, 0, &inside->name_room,
				       sizeof(*recording->names));
	recording->threads = inside_grow(recording, NULL, 0, &inside->thread_room,
					 sizeof(*recording->threads));
	if (inside->no_memory)
		return;
	recording->names[0] = no_name;
	recording->name_count = 1;
	memset(&recording->threads[0], 0, sizeof(recording->threads[0]));
	recording->threads[0].ended_ns = -1;
	recording->thread_count = 1;
}

static int store_read_all(struct recording *recording, struct kymo_error *err)
{
	struct inside *inside = inside_of(recording);
	bool has_run;

	inside_begin_lists(recording);
	has_run = store_read_run(recording);
	/* Without a run file its boot is unknown: a live process then shows that it is this one. */
	inside->same_boot = recording->kind == STORE_DIRECTORY && !inside->source.blobs &&
			    alive_same_boot(recording->run.boot_id);
	open_process_controls(recording);
	open_process_ranks(recording);
	if (!has_run && !recording->process_count)
		return error_set(err, EPROTO, "%s cannot be read: %s", recording->path,
				 recording->problem_count ? recording->problems[0] : "it is empty");
	if (!has_run) {
		make_up_run(recording);
		inside->same_boot = false;
		for (size_t i = 0; i < recording->process_count; i++)
			inside->same_boot = inside->same_boot ||
					    recording->processes[i].state == STORE_LIVE;
	}
	clockmap_all(recording, take_now(recording), inside_hear, recording);
	inside->latest_ns = latest_possible(recording);
	open_process_contents(recording);
	store_sum_up(recording);
	add_own_run(recording);
	inside_end_problems(recording);
	return inside->no_memory ? error_set(err, ENOMEM, "out of memory for the recording %s",
					     recording->path)
				 : 0;
}

void inside_no_source(struct inside *inside)
{
	run_files_open_blobs(&inside->source, NULL, 0);
}

int inside_open(struct run_files *source, const char *path, size_t parts, struct recording **out,
		struct kymo_error *err)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	struct inside *inside = calloc(1, sizeof(*inside));
	int rc;

	if (!recording || !inside) {
		free(recording);
		free(inside);
		run_files_close(source);
		return error_set(err, ENOMEM, "out of memory for the recording %s", path);
	}
	inside->source = *source;
	inside->open_files = files_to_hold() / parts;
	inside->room_bytes = room_for_copies() / parts;
	recording->arena = inside;
	recording->kind = run_files_is_snapshot(source) ? STORE_SNAPSHOT : STORE_DIRECTORY;
	snprintf(recording->path, sizeof(recording->path), "%s", path);
	rc = store_read_all(recording, err);
	if (rc) {
		store_close(recording);
		return rc;
	}
	*out = recording;
	return 0;
}

static void say_elsewhere(struct recording *recording)
{
	const struct store_run *own = &recording->runs[0];

	if (own->elsewhere)
		inside_say(
			recording,
			"%s has not ended, and was recorded on %s: whether it still runs is not "
			"known here. Its last data is %.1f s old; rows that were not on disk yet "
			"are missing",
			recording->program[0] ? recording->program : "the program", own->host,
			(double)own->age_ns / 1e9);
}

int store_open(const char *path, struct recording **out, struct kymo_error *err)
{
	struct run_files source;
	int rc;

	*out = NULL;
	switch (store_kind(path, err)) {
	case STORE_NONE: return err && err->code ? -err->code : -EINVAL;
	case STORE_PACKED:
		return error_set(
			err, EINVAL,
			"%s is a packed recording (a DuckDB database); only queries can open it",
			path);
	case STORE_LAKE:
		return error_set(err, EINVAL, "%s is a job of a lake; only queries can open it",
				 path);
	case STORE_JOB: return job_open(path, out, err);
	default: break;
	}
	rc = run_files_open(&source, path, err);
	if (!rc)
		rc = inside_open(&source, path, 1, out, err);
	if (rc)
		return rc;
	say_elsewhere(*out);
	host_clocks_align(*out);
	return 0;
}

void store_close(struct recording *recording)
{
	struct inside *inside;

	if (!recording)
		return;
	inside = inside_of(recording);
	for (size_t i = 0; i < inside->copy_count; i++)
		stream_image_free(&inside->copies[i]);
	for (size_t i = 0; i < recording->problem_count; i++)
		free(recording->problems[i]);
	free(inside->copies);
	intern_fini(&inside->name_index);
	for (size_t i = 0; i < recording->run_count; i++)
		store_close(recording->runs[i].recording);
	free(recording->runs);
	free(recording->problems);
	free(recording->host_clocks);
	free(recording->processes);
	free(recording->streams);
	free(recording->names);
	free(recording->threads);
	arena_free(&inside->arena);
	run_files_close(&inside->source);
	free(inside);
	free(recording);
}
