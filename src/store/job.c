#include "store/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/safe_path.h"
#include "base/grow.h"
#include "base/intern.h"
#include "store/discover.h"
#include "store/host_clocks.h"
#include "store/parallel.h"
#include "store/recording_inside.h"

#define JOB_RUNS_MAX 100000u /* subdirectories that are looked at */

bool job_is(int directory)
{
	char magic[sizeof(JOB_MAGIC) - 1];
	int fd = openat(directory, JOB_MARK, RUN_FILES_OPEN_FLAGS);
	bool is = fd >= 0 && read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
		  !memcmp(magic, JOB_MAGIC, sizeof(magic));

	if (fd >= 0)
		close(fd);
	return is;
}

/* ---- the recordings ---------------------------------------------------------------------- */

struct job_names {
	char (*names)[256];
	size_t count, room;
};

static int job_compare_names(const void *left, const void *right)
{
	return strcmp(left, right);
}

static bool job_add_name(struct job_names *list, const char *name)
{
	if (list->count >= JOB_RUNS_MAX ||
	    !grow((void **)&list->names, &list->room, list->count, sizeof(*list->names)))
		return false;
	snprintf(list->names[list->count++], sizeof(*list->names), "%s", name);
	return true;
}

/* In order of their names, so that every look gives the same numbers. */
static int job_list(const char *path, struct job_names *list, struct kymo_error *err)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir)
		return error_set(err, errno, "cannot open the job %s: %s", path, strerror(errno));
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
		    !job_add_name(list, entry->d_name))
			break;
	closedir(dir);
	if (list->count)
		qsort(list->names, list->count, sizeof(*list->names), job_compare_names);
	return 0;
}

static bool job_add_run(struct recording *job, struct recording *part)
{
	struct store_run *run;

	if (!grow_short((void **)&job->runs, job->run_count, sizeof(*job->runs)))
		return false;
	run = &job->runs[job->run_count++];
	*run = part->runs[0];
	run->recording = part;
	return true;
}

/* A recording of the job, as it was opened; NULL with the reason. */
struct job_part {
	struct recording *recording;
	struct kymo_error why;
};

struct job_parts {
	const struct recording *job;
	const struct job_names *list;
	struct job_part *parts;
};

static int job_open_part(const char *path, size_t parts, struct recording **out,
			 struct kymo_error *err)
{
	struct run_files source;
	int rc = store_kind(path, err) == STORE_DIRECTORY ? 0 : -EINVAL;

	if (!rc)
		rc = run_files_open(&source, path, err);
	return rc ? rc : inside_open(&source, path, parts, out, err);
}

static void job_open_one(size_t i, void *context)
{
	const struct job_parts *all = context;
	struct job_part *part = &all->parts[i];
	char path[KYMO_PATH_BYTES + 256];

	snprintf(path, sizeof(path), "%s/%s", all->job->path, all->list->names[i]);
	if (strlen(path) >= KYMO_PATH_BYTES)
		error_set(&part->why, ENAMETOOLONG, "its path is too long");
	else
		job_open_part(path, all->list->count, &part->recording, &part->why);
}

/* In the order of their names, whatever the order in which they were opened. */
static void job_add_parts(struct recording *job, const struct job_parts *all,
			  struct kymo_error *first)
{
	for (size_t i = 0; i < all->list->count; i++) {
		struct job_part *part = &all->parts[i];

		if (part->recording && job_add_run(job, part->recording))
			continue;
		if (part->recording)
			error_set(&part->why, ENOMEM, "out of memory for the job");
		store_close(part->recording);
		inside_say(job, "the recording %s of the job is left out: %s", all->list->names[i],
			   part->why.text);
		if (!first->text[0])
			*first = part->why;
	}
}

static int job_open_runs(struct recording *job, struct kymo_error *err)
{
	struct job_names list = { 0 };
	struct job_parts all = { .job = job, .list = &list };
	struct kymo_error first = { 0 };
	int rc = job_list(job->path, &list, err);

	if (!rc && !(all.parts = calloc(list.count + 1, sizeof(*all.parts))))
		rc = error_set(err, ENOMEM, "out of memory for the job %s", job->path);
	if (!rc) {
		parallel_each(list.count, job_open_one, &all);
		job_add_parts(job, &all, &first);
	}
	free(all.parts);
	free(list.names);
	if (!rc && !job->run_count)
		rc = error_set(err, first.code ? first.code : ENOENT,
			       "the job %s has no recording that can be read%s%s", job->path,
			       first.text[0] ? ": " : "", first.text);
	return rc;
}

/* ---- hosts ------------------------------------------------------------------------------- */

struct job_process_key {
	const struct recording *job;
	const char *host;
	int32_t pid;
};

static bool job_same_key(const void *owner, uint32_t number, const void *wanted)
{
	const struct job_process_key *keys = owner, *key = wanted;

	return keys[number].pid == key->pid && !strcmp(keys[number].host, key->host);
}

static bool job_is_taken(const struct intern *index, const struct job_process_key *keys,
			 const struct recording *part, const char *host)
{
	for (size_t i = 0; i < part->process_count; i++) {
		const struct job_process_key key = { NULL, host, part->processes[i].pid };
		uint64_t hash = intern_hash((uint32_t)key.pid, host, strlen(host));

		if (intern_find(index, hash, job_same_key, keys, &key) != INTERN_NONE)
			return true;
	}
	return false;
}

/* Runs after all runs are known: they do not move any more. */
static void job_name_hosts(struct recording *job)
{
	size_t count = 0;
	struct intern index = { 0 };
	struct job_process_key *keys;

	for (size_t i = 0; i < job->run_count; i++)
		count += job->runs[i].recording->process_count;
	keys = calloc(count + 1, sizeof(*keys));
	for (size_t i = 0; keys && i < job->run_count; i++) {
		struct store_run *run = &job->runs[i];
		char plain[sizeof(run->host)];

		memcpy(plain, run->host, sizeof(plain));
		for (unsigned number = 2;
		     number < JOB_RUNS_MAX && job_is_taken(&index, keys, run->recording, run->host);
		     number++)
			snprintf(run->host, sizeof(run->host), "%.64s#%u", plain, number);
		for (size_t k = 0; k < run->recording->process_count; k++) {
			struct job_process_key key = { job, run->host,
						       run->recording->processes[k].pid };
			uint32_t at = intern_add(
				&index, intern_hash((uint32_t)key.pid, key.host, strlen(key.host)));

			if (at != INTERN_NONE)
				keys[at] = key;
		}
	}
	if (!keys)
		inside_of(job)->no_memory = true;
	intern_fini(&index);
	free(keys);
}

/* ---- one time axis ------------------------------------------------------------------------ */

static int64_t job_shifted(int64_t ns, int64_t by)
{
	int64_t sum;

	return __builtin_add_overflow(ns, by, &sum) ? (by > 0 ? INT64_MAX : INT64_MIN) : sum;
}

static const struct store_run *job_first_run(const struct recording *job)
{
	const struct store_run *first = &job->runs[0];

	for (size_t i = 1; i < job->run_count; i++)
		if (job->runs[i].run.epoch.realtime_ns &&
		    job->runs[i].run.epoch.realtime_ns < first->run.epoch.realtime_ns)
			first = &job->runs[i];
	return first;
}

/* The first run of the job with the same boot, whose monotonic clock is that of this one. */
static const struct store_run *job_same_boot(const struct recording *job,
					     const struct store_run *run)
{
	const char *boot_id = run->run.boot_id;

	for (size_t i = 0;
	     boot_id[0] && strcmp(boot_id, HOST_CLOCKS_IMPORTED) && i < job->run_count; i++)
		if (!strcmp(job->runs[i].run.boot_id, boot_id))
			return &job->runs[i];
	return run;
}

/* When a run began, after the first: by the wall clocks of hosts, and within a host by its
   monotonic clock, since its wall clock may be set in between. */
static int64_t job_start_of(const struct recording *job, const struct store_run *run)
{
	const struct store_run *first = job_same_boot(job, run);
	int64_t wall = first->run.epoch.realtime_ns ? (int64_t)(first->run.epoch.realtime_ns -
								job->run.epoch.realtime_ns)
						    : 0;

	return job_shifted(wall,
			   (int64_t)(run->run.epoch.monotonic_ns - first->run.epoch.monotonic_ns));
}

/* ---- merging ------------------------------------------------------------------------------ */

/* What is added to the numbers of a run. */
struct job_merge {
	struct recording *job;
	const struct recording *part;
	uint32_t run;
	uint32_t *name_of; /* of the part's names */
	uint32_t thread_base, process_base;
	int64_t shift_ns;
};

static void *job_grow(struct recording *job, void *items, size_t count, size_t more, size_t bytes)
{
	void *larger = reallocarray(items, count + more + 1, bytes);

	if (!larger)
		inside_of(job)->no_memory = true;
	return larger ? larger : items;
}

static void job_merge_names(struct job_merge *merge)
{
	const struct recording *part = merge->part;

	merge->name_of = calloc(part->name_count + 1, sizeof(*merge->name_of));
	if (!merge->name_of) {
		inside_of(merge->job)->no_memory = true;
		return;
	}
	for (size_t i = 1; i < part->name_count; i++)
		merge->name_of[i] = open_names_unify(merge->job, &part->names[i]);
}

/* Index 0 is common to all. */
static uint32_t job_thread(const struct job_merge *merge, uint32_t thread)
{
	return thread && thread < merge->part->thread_count ? merge->thread_base + thread - 1 : 0;
}

static uint32_t job_name(const struct job_merge *merge, uint32_t name)
{
	return name < merge->part->name_count ? merge->name_of[name] : 0;
}

static void job_merge_threads(struct job_merge *merge)
{
	struct recording *job = merge->job;

	merge->thread_base = (uint32_t)job->thread_count;
	for (size_t i = 1; i < merge->part->thread_count; i++) {
		struct store_thread *thread = &job->threads[job->thread_count++];

		*thread = merge->part->threads[i];
		thread->process += merge->process_base;
		thread->started_ns = job_shifted(thread->started_ns, merge->shift_ns);
		if (thread->ended_ns >= 0)
			thread->ended_ns = job_shifted(thread->ended_ns, merge->shift_ns);
	}
}

static void job_merge_processes(struct job_merge *merge)
{
	struct recording *job = merge->job;

	merge->process_base = (uint32_t)job->process_count;
	for (size_t i = 0; i < merge->part->process_count; i++) {
		struct store_process *process = &job->processes[job->process_count++];

		*process = merge->part->processes[i];
		process->run = merge->run;
		process->host = job->runs[merge->run].host;
		process->started_ns = job_shifted(process->started_ns, merge->shift_ns);
		process->ended_ns = job_shifted(process->ended_ns, merge->shift_ns);
		process->clock.base_ns = job_shifted(process->clock.base_ns, merge->shift_ns);
		/* The part's own memory: it is not read any more. */
		for (uint32_t k = 0; k < process->name_count; k++)
			process->name_of[k] = job_name(merge, process->name_of[k]);
	}
}

static void job_merge_process_threads(struct job_merge *merge)
{
	for (size_t i = 0; i < merge->part->process_count; i++) {
		struct store_process *process = &merge->job->processes[merge->process_base + i];

		for (uint32_t k = 0; k < process->thread_count; k++)
			process->thread_of[k] = job_thread(merge, process->thread_of[k]);
	}
}

static void job_merge_streams(struct job_merge *merge)
{
	struct recording *job = merge->job;

	for (size_t i = 0; i < merge->part->stream_count; i++) {
		struct store_stream *stream = &job->streams[job->stream_count++];

		*stream = merge->part->streams[i];
		stream->process += merge->process_base;
		for (size_t k = 0; k < stream->open_count; k++) {
			struct store_open_zone *zone = &stream->open_zones[k];

			zone->name = job_name(merge, zone->name);
			zone->thread = job_thread(merge, zone->thread);
			zone->start_ns = job_shifted(zone->start_ns, merge->shift_ns);
		}
		for (size_t k = 0; k < stream->total_count; k++)
			stream->totals[k].name = job_name(merge, stream->totals[k].name);
	}
}

static void job_merge_problems(struct job_merge *merge)
{
	for (size_t i = 0; i < merge->part->problem_count; i++)
		inside_say(merge->job, "%s: %s", merge->job->runs[merge->run].host,
			   merge->part->problems[i]);
}

static void job_merge_run(struct recording *job, uint32_t number)
{
	struct store_run *run = &job->runs[number];
	struct job_merge merge = { .job = job, .part = run->recording, .run = number };

	merge.shift_ns = job_start_of(job, run);
	run->started_ns = merge.shift_ns;
	job_merge_names(&merge);
	if (merge.name_of) {
		job_merge_processes(&merge);
		job_merge_threads(&merge);
		job_merge_process_threads(&merge);
		job_merge_streams(&merge);
	}
	job_merge_problems(&merge);
	free(merge.name_of);
	job->live = job->live || run->live;
}

/* One sentence for all recordings whose hosts alone know whether they run. */
static void job_say_elsewhere(struct recording *job)
{
	size_t count = 0;
	int64_t oldest = 0;

	for (size_t i = 0; i < job->run_count; i++) {
		if (!job->runs[i].elsewhere)
			continue;
		count++;
		oldest = job->runs[i].age_ns > oldest ? job->runs[i].age_ns : oldest;
	}
	if (count)
		inside_say(job,
			   "%zu of %zu recordings are of other hosts and have not ended: whether "
			   "they still run is not known here. Their last data is at most %.1f s "
			   "old; rows that were not on disk yet are missing",
			   count, job->run_count, (double)oldest / 1e9);
}

static void job_make_room(struct recording *job)
{
	size_t processes = 0, threads = 0, streams = 0;

	for (size_t i = 0; i < job->run_count; i++) {
		processes += job->runs[i].recording->process_count;
		threads += job->runs[i].recording->thread_count;
		streams += job->runs[i].recording->stream_count;
	}
	job->processes = job_grow(job, NULL, processes, 0, sizeof(*job->processes));
	job->threads = job_grow(job, job->threads, threads, 1, sizeof(*job->threads));
	job->streams = job_grow(job, NULL, streams, 0, sizeof(*job->streams));
}

/* ---- the earliest start is 0 ---------------------------------------------------------------- */

static void job_shift_processes(struct recording *job, int64_t by)
{
	for (size_t i = 0; i < job->process_count; i++) {
		struct store_process *process = &job->processes[i];

		process->started_ns = job_shifted(process->started_ns, by);
		process->ended_ns = job_shifted(process->ended_ns, by);
		process->clock.base_ns = job_shifted(process->clock.base_ns, by);
		for (uint32_t k = 0; k < process->clock.piece_count; k++)
			process->clock.pieces[k].base_ns = job_shifted(
				process->clock.pieces[k].base_ns, by);
	}
	for (size_t i = 1; i < job->thread_count; i++) {
		struct store_thread *thread = &job->threads[i];

		thread->started_ns = job_shifted(thread->started_ns, by);
		if (thread->ended_ns >= 0)
			thread->ended_ns = job_shifted(thread->ended_ns, by);
	}
	for (size_t i = 0; i < job->stream_count; i++)
		for (size_t k = 0; k < job->streams[i].open_count; k++)
			job->streams[i].open_zones[k].start_ns = job_shifted(
				job->streams[i].open_zones[k].start_ns, by);
}

void job_shift(struct recording *recording, int64_t by)
{
	job_shift_processes(recording, by);
	for (size_t i = 0; i < recording->run_count; i++)
		recording->runs[i].started_ns = job_shifted(recording->runs[i].started_ns, by);
	recording->duration_ns = job_shifted(recording->duration_ns, by);
}

/* Aligned clocks have moved the runs. */
static void job_begin_at_0(struct recording *job)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < job->run_count; i++)
		first = job->runs[i].started_ns < first ? job->runs[i].started_ns : first;
	if (first == INT64_MIN)
		first = 0;
	if (first)
		job_shift_processes(job, -first);
	job->run.epoch.realtime_ns += (uint64_t)first;
	for (size_t i = 0; i < job->host_clock_count; i++)
		if (job->host_clocks[i].method == STORE_ALIGN_FITTED)
			job->host_clocks[i].t0_ns = job_shifted(job->host_clocks[i].t0_ns, -first);
	for (size_t i = 0; i < job->run_count; i++) {
		struct store_run *run = &job->runs[i];
		int64_t end;

		run->started_ns = job_shifted(run->started_ns, -first);
		end = job_shifted(run->started_ns, run->duration_ns);
		job->duration_ns = end > job->duration_ns ? end : job->duration_ns;
	}
}

static int job_merge_all(struct recording *job, struct kymo_error *err)
{
	const struct store_run *first = job_first_run(job);

	job->run = first->run;
	memcpy(job->program, first->program, sizeof(job->program));
	job->command = first->recording->command;
	inside_begin_lists(job);
	job_make_room(job);
	job_name_hosts(job);
	for (uint32_t i = 0; i < job->run_count && !inside_of(job)->no_memory; i++)
		job_merge_run(job, i);
	job_say_elsewhere(job);
	open_process_ranks(job);
	if (!inside_of(job)->no_memory)
		host_clocks_align(job);
	job_begin_at_0(job);
	inside_end_problems(job);
	return inside_of(job)->no_memory
		       ? error_set(err, ENOMEM, "out of memory for the job %s", job->path)
		       : 0;
}

/* ---- removing ----------------------------------------------------------------------------- */

static int job_check_ended(const char *path, struct kymo_error *err)
{
	struct recording *job = NULL;
	size_t live = 0, elsewhere = 0;
	int rc = job_open(path, &job, err);

	for (size_t i = 0; !rc && i < job->run_count; i++) {
		struct store_entry entry = { 0 };

		/* A program without libkymo runs, too: its collector does. */
		live += job->runs[i].live || (!discover_inspect(job->runs[i].path, false, &entry) &&
					      entry.state == STORE_LIVE);
		elsewhere += job->runs[i].elsewhere;
	}
	if (!rc && live)
		rc = error_set(err, EBUSY, "cannot remove %s: %zu of its recordings run", path,
			       live);
	else if (!rc && elsewhere)
		rc = error_set(err, EBUSY,
			       "cannot remove %s: %zu of its recordings may still run on other "
			       "hosts; remove them by their paths",
			       path, elsewhere);
	store_close(job);
	return rc;
}

static int job_remove_runs(const char *path, size_t *removed, struct kymo_error *err)
{
	struct job_names list = { 0 };
	int rc = job_list(path, &list, err);

	for (size_t i = 0; i < list.count && !rc; i++) {
		char run[KYMO_PATH_BYTES + 256];

		snprintf(run, sizeof(run), "%s/%s", path, list.names[i]);
		if (strlen(run) >= KYMO_PATH_BYTES || store_kind(run, NULL) != STORE_DIRECTORY)
			continue;
		rc = store_remove(run, err);
		*removed += !rc;
	}
	free(list.names);
	return rc;
}

int job_remove(const char *path, size_t *removed, struct kymo_error *err)
{
	char whole[KYMO_PATH_BYTES];
	struct safe_dir dir;
	int rc = safe_path_resolve(path, whole, sizeof(whole), err);

	*removed = 0;
	if (!rc)
		rc = job_check_ended(whole, err);
	if (!rc)
		rc = job_remove_runs(whole, removed, err);
	if (!rc)
		rc = safe_dir_open(&dir, whole, 0, err);
	if (!rc) {
		if (unlinkat(dir.fd, JOB_MARK, 0))
			rc = error_set(err, errno, "cannot remove %s: %s", path, strerror(errno));
		safe_dir_close(&dir);
	}
	if (!rc)
		store_remove_empty(whole);
	return rc;
}

int job_open(const char *path, struct recording **out, struct kymo_error *err)
{
	struct recording *job = calloc(1, sizeof(*job));
	struct inside *inside = calloc(1, sizeof(*inside));
	int rc;

	if (!job || !inside) {
		free(job);
		free(inside);
		return error_set(err, ENOMEM, "out of memory for the job %s", path);
	}
	inside_no_source(inside);
	job->arena = inside;
	job->kind = STORE_JOB;
	snprintf(job->path, sizeof(job->path), "%s", path);
	rc = job_open_runs(job, err);
	if (!rc)
		rc = job_merge_all(job, err);
	if (rc) {
		store_close(job);
		return rc;
	}
	*out = job;
	return 0;
}
