/* Resolves a target (a pid, a path, a name, `latest`) to the path of a recording. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/spelling.h"
#include "base/files/paths.h"
#include "store/discover.h"
#include "store/lake/lake_dir.h"

static int resolve_give(const char *path, char *out, size_t out_bytes, struct kymo_error *err)
{
	if (strlen(path) >= out_bytes)
		return error_set(err, ENAMETOOLONG, "the path %.60s… is too long", path);
	strcpy(out, path);
	return 0;
}

/* A snapshot or packed file is a copy of a run: the run itself is preferred. */
static bool is_newer(const struct store_entry *entry, const struct store_entry *found)
{
	if ((entry->kind == STORE_DIRECTORY) != (found->kind == STORE_DIRECTORY))
		return entry->kind == STORE_DIRECTORY;
	return entry->started_unix_ns > found->started_unix_ns;
}

struct process {
	int32_t pid;
	/* of the process running now; 0: none, and any process that had the pid matches */
	uint64_t starttime;
};

static const struct store_entry *newest(const struct store_entry *entries, size_t count,
					bool (*wanted)(const struct store_entry *entry,
						       const struct process *process),
					const struct process *process)
{
	const struct store_entry *found = NULL;

	for (size_t i = 0; i < count; i++)
		if (!entries[i].unreadable[0] && wanted(&entries[i], process) &&
		    (!found || is_newer(&entries[i], found)))
			found = &entries[i];
	return found;
}

static bool any(const struct store_entry *entry, const struct process *process)
{
	(void)entry;
	(void)process;
	return true;
}

/* A copy here does not come before its run elsewhere. */
static bool is_run_from_here(const struct store_entry *entry, const struct process *process)
{
	(void)process;
	return entry->here && entry->kind == STORE_DIRECTORY;
}

static bool lists_process(const struct run_files *source, const struct process *wanted)
{
	struct run_files_list list = { 0 };
	struct run_files_process process;
	bool found = false;

	run_files_processes(source, &list);
	for (size_t i = 0; i < list.count && !found; i++)
		found = run_files_is_process(list.items[i].name, &process) &&
			process.pid == wanted->pid &&
			(!wanted->starttime || process.starttime == wanted->starttime);
	run_files_list_free(&list);
	return found;
}

/* A program recorded from outside has no directory of its own: the run file names it. */
static bool has_process(const struct store_entry *entry, const struct process *wanted)
{
	struct run_files source;
	struct kymo_run_file run;
	bool found;

	if (store_kind_is_sql(entry->kind) || run_files_open(&source, entry->path, NULL))
		return false;
	found = lists_process(&source, wanted) ||
		(run_files_head(&source, "run", KYMO_MAGIC_RUN, &run, sizeof(run)) &&
		 run.target_pid == wanted->pid &&
		 (!wanted->starttime || run.target_starttime == wanted->starttime));
	run_files_close(&source);
	return found;
}

/* Pids are reused: an ended process may differ from the running one. In a live recording the pid
   may be that of a container. */
static bool is_target(const struct store_entry *entry, const struct process *process)
{
	bool live = entry->kind == STORE_DIRECTORY && entry->state == STORE_LIVE;

	return entry->pid == process->pid &&
	       (live || !process->starttime || has_process(entry, process));
}

static int resolve_pid(int32_t pid, const struct store_entry *entries, size_t count, char *out,
		       size_t out_bytes, struct kymo_error *err)
{
	struct process process = { .pid = pid, .starttime = paths_starttime(pid) };
	const struct store_entry *found = newest(entries, count, is_target, &process);

	if (!found)
		found = newest(entries, count, has_process, &process);
	if (found)
		return resolve_give(found->path, out, out_bytes, err);
	if (process.starttime)
		return error_set(err, ENOENT,
				 "process %d does not record; use `kymo attach %d` to watch it, or "
				 "start it with `kymo run -- …` or KYMO=on",
				 (int)pid, (int)pid);
	return error_set(
		err, ENOENT,
		"there is no process %d and no recording of it; `kymo ls` lists recordings",
		(int)pid);
}

static const char *resolve_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int no_such_recording(const char *target, const struct store_entry *entries, size_t count,
			     struct kymo_error *err)
{
	const char *nearest = NULL;
	size_t best = strlen(resolve_base_name(target)) > 4 ? 3 : 2;

	for (size_t i = 0; i < count; i++) {
		size_t far = spelling_distance(resolve_base_name(target),
					       resolve_base_name(entries[i].path));
		size_t from_name = entries[i].name[0] ? spelling_distance(target, entries[i].name)
						      : SIZE_MAX;

		if (far < best || from_name < best) {
			best = far < from_name ? far : from_name;
			nearest = far < from_name ? entries[i].path : entries[i].name;
		}
	}
	if (nearest)
		return error_set(err, ENOENT,
				 "no recording '%s'; did you mean %s? `kymo ls` lists them", target,
				 nearest);
	return error_set(err, ENOENT, "no recording '%s'; `kymo ls` lists them", target);
}

static const struct store_entry *newest_called(const char *name, const struct store_entry *entries,
					       size_t count, size_t *called)
{
	const struct store_entry *found = NULL;

	*called = 0;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(entries[i].name, name) != 0 &&
		    strcmp(resolve_base_name(entries[i].path), name) != 0)
			continue;
		++*called;
		if (!found || is_newer(&entries[i], found))
			found = &entries[i];
	}
	return found;
}

static int resolve_name(const char *target, const struct store_entry *entries, size_t count,
			bool only, char *out, size_t out_bytes, struct kymo_error *err)
{
	size_t called;
	const struct store_entry *found = newest_called(target, entries, count, &called);

	if (!found)
		return no_such_recording(target, entries, count, err);
	if (only && called > 1)
		return error_set(
			err, EINVAL,
			"%zu recordings are named %s; give a path instead, the newest is %s",
			called, target, found->path);
	return resolve_give(found->path, out, out_bytes, err);
}

static int resolve_latest(const struct store_entry *entries, size_t count, char *out,
			  size_t out_bytes, struct kymo_error *err)
{
	const struct store_entry *found = newest(entries, count, is_run_from_here, NULL);

	if (!found)
		found = newest(entries, count, any, NULL);
	if (found)
		return resolve_give(found->path, out, out_bytes, err);
	return error_set(err, ENOENT, "there are no recordings; `kymo run -- CMD` makes one");
}

bool store_is_pid(const char *target, int32_t *out_pid)
{
	const char *digits = strncmp(target, "pid ", 4) ? target : target + 4;

	*out_pid = 0;
	if (!*digits || strlen(digits) > 9 || digits[strspn(digits, "0123456789")])
		return false;
	*out_pid = (int32_t)strtol(digits, NULL, 10);
	return true;
}

/* Something at this path. A program's own file `plain` does not hide the recording of that name. */
static bool names_recording(const char *path)
{
	return !access(path, F_OK) && (strchr(path, '/') || store_kind(path, NULL) != STORE_NONE);
}

/* A lake of one job stands for that job. */
static int resolve_lake(const char *path, char *out, size_t out_bytes, struct kymo_error *err)
{
	char whole[KYMO_PATH_BYTES + LAKE_RUN_BYTES], job[LAKE_RUN_BYTES];
	size_t jobs;

	if (store_kind(path, NULL) != STORE_NONE || !lake_is_lake(path, job, sizeof(job), &jobs))
		return resolve_give(path, out, out_bytes, err);
	if (!job[0])
		return error_set(err, EINVAL,
				 "%s is a lake of %zu jobs; name one, as %s/JOB: `kymo lake ls %s` "
				 "lists them",
				 path, jobs, path, path);
	snprintf(whole, sizeof(whole), "%s/%s", path, job);
	return resolve_give(whole, out, out_bytes, err);
}

const struct store_entry *store_called(const char *name, const struct store_entry *entries,
				       size_t count)
{
	int32_t pid;
	size_t called;

	return !*name || !strcmp(name, "latest") || store_is_pid(name, &pid) ||
			       names_recording(name)
		       ? NULL
		       : newest_called(name, entries, count, &called);
}

static size_t without_foreign(struct store_entry *entries, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!entries[i].foreign)
			entries[kept++] = entries[i];
	return kept;
}

static int resolve(const char *target, bool only, char *out_path, size_t out_bytes,
		   struct kymo_error *err)
{
	struct store_entry *entries;
	struct kymo_error list_err = { 0 };
	bool latest = !target || !strcmp(target, "latest");
	int32_t pid;
	bool is_pid = !latest && store_is_pid(target, &pid);
	size_t count, called;
	int rc;

	if (target && !*target)
		return error_set(
			err, EINVAL,
			"the target is an empty text; use `latest` for the newest recording");

	/* A path is unambiguous; `./123` and `./latest` are for directories with such names. */
	if (!latest && !is_pid && names_recording(target))
		return resolve_lake(target, out_path, out_bytes, err);
	rc = store_list(&entries, &count, &list_err);
	if (rc && (latest || is_pid)) {
		if (err)
			*err = list_err;
		return rc;
	}
	if (only)
		count = without_foreign(entries, count);
	if (latest)
		rc = resolve_latest(entries, count, out_path, out_bytes, err);
	else if (is_pid)
		rc = resolve_pid(pid, entries, count, out_path, out_bytes, err);
	else if (!access(target, F_OK) && !newest_called(target, entries, count, &called))
		rc = resolve_lake(target, out_path, out_bytes, err); /* its reader says why */
	else
		rc = resolve_name(target, entries, count, only, out_path, out_bytes, err);
	free(entries);
	return rc;
}

int store_resolve(const char *target, char *out_path, size_t out_bytes, struct kymo_error *err)
{
	return resolve(target, false, out_path, out_bytes, err);
}

int store_resolve_only(const char *target, char *out_path, size_t out_bytes, struct kymo_error *err)
{
	return resolve(target, true, out_path, out_bytes, err);
}
