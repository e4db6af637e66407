/* Finds recordings: in KYMO_DIR, in the working directory, and in the user's index. */
#include "store/discover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files/paths.h"
#include "base/grow.h"
#include "store/alive.h"
#include "store/job.h"
#include "store/parallel.h"
#include "store/recording_inside.h"
#include "base/utf8.h"

#define LOOK_AT 256 /* names read in a directory to detect a recording without a file `run` */
#define RUNS_AT_ONCE 256 /* recordings of a job that are looked at together */

/* ---- names and sizes --------------------------------------------------------------------- */

bool discover_is_ours(const char *name, bool in_process)
{
	char inner[RUN_FILES_PATH_BYTES];
	struct run_files_item item;
	size_t bytes = strlen(name);

	if (in_process && !strncmp(name, KYMO_SPARE_NAME, strcspn(KYMO_SPARE_NAME, "%")))
		return true;
	if (name[0] == '.' && bytes > 6 && bytes - 6 < sizeof(inner) &&
	    !strcmp(name + bytes - 5, ".part")) {
		memcpy(inner, name + 1, bytes - 6);
		inner[bytes - 6] = '\0';
		name = inner;
	}
	return in_process ? run_files_parse(name, &item) != RUN_FILES_FOREIGN
			  : !strcmp(name, "run");
}

static uint64_t discover_bytes_of(int directory, const char *name)
{
	struct stat st;

	return fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)
		       ? 0
		       : (uint64_t)st.st_blocks * 512u;
}

static uint64_t sum_directory(int directory, const char *name, bool is_process)
{
	int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t bytes = 0;

	while (dir && (entry = readdir(dir))) {
		if (discover_is_ours(entry->d_name, is_process))
			bytes += discover_bytes_of(dirfd(dir), entry->d_name);
		else if (!is_process && run_files_is_process(entry->d_name, NULL))
			bytes += sum_directory(dirfd(dir), entry->d_name, true);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return bytes;
}

uint64_t discover_bytes_in(int directory)
{
	return sum_directory(directory, ".", false);
}

/* ---- inspecting one ---------------------------------------------------------------------- */

struct look {
	struct run_files source;
	struct kymo_run_file run;
	struct kymo_control control; /* the one being inspected */
	bool has_run;
	bool same_boot;
	struct store_entry *entry;
};

static bool supervisor_lives(const struct look *look)
{
	return look->has_run && look->same_boot && !look->run.ended && look->run.supervised &&
	       alive_process(look->run.supervisor_pid, look->run.supervisor_starttime, 0);
}

static uint64_t last_realtime(const struct kymo_control *control)
{
	uint64_t last = 0;

	for (int i = 0; i < KYMO_CLOCK_PAIRS; i++)
		if (control->pairs[i].realtime_ns > last)
			last = control->pairs[i].realtime_ns;
	return last;
}

/* Adds what a process contributes beyond the run file. */
static void discover_look_at_process(struct look *look, const char *process)
{
	struct store_entry *entry = look->entry;
	struct kymo_control *control = &look->control;
	char path[RUN_FILES_PATH_BYTES * 2];
	enum store_state state;
	bool is_target;

	snprintf(path, sizeof(path), "%s/control", process);
	if (!run_files_head(&look->source, path, KYMO_MAGIC_CONTROL, control, sizeof(*control)))
		return;
	state = open_process_state(control, &look->run,
				   look->same_boot && !run_files_is_snapshot(&look->source));
	is_target = control->role == KYMO_ROLE_TARGET &&
		    (!entry->pid || control->pid == entry->pid);
	if (is_target && !entry->pid)
		entry->pid = control->pid;
	if (is_target && !entry->program[0])
		utf8_repair(control->program, strnlen(control->program, sizeof(control->program)),
			    entry->program, sizeof(entry->program));
	if (state == STORE_LIVE || (is_target && entry->state == STORE_LOST))
		entry->state = state;
	if (is_target && control->wstatus_known && !entry->wstatus_known) {
		entry->wstatus_known = true;
		entry->wstatus = control->wstatus;
	}
	if (control->pairs[0].realtime_ns &&
	    (!entry->started_unix_ns ||
	     (!look->has_run && control->pairs[0].realtime_ns < entry->started_unix_ns)))
		entry->started_unix_ns = control->pairs[0].realtime_ns;
	if (last_realtime(control) > entry->ended_unix_ns && !look->run.ended)
		entry->ended_unix_ns = last_realtime(control);
}

static bool is_working_directory(const char *path, size_t room)
{
	char here[PATH_MAX];

	return getcwd(here, sizeof(here)) && strnlen(path, room) == strlen(here) &&
	       !memcmp(path, here, strlen(here));
}

static void look_at_run(struct look *look)
{
	const struct kymo_run_file *run = &look->run;
	struct store_entry *entry = look->entry;

	look->run.boot_id[sizeof(run->boot_id) - 1] = '\0';
	entry->started_unix_ns = run->epoch.realtime_ns;
	entry->pid = run->target_pid;
	utf8_repair(run->program, strnlen(run->program, sizeof(run->program)), entry->program,
		    sizeof(entry->program));
	utf8_repair(run->name, strnlen(run->name, sizeof(run->name)), entry->name,
		    sizeof(entry->name));
	entry->here = is_working_directory(run->cwd, sizeof(run->cwd));
	if (!run->ended)
		return;
	entry->wstatus_known = run->ended == 1;
	entry->wstatus = run->target_wstatus;
	entry->ended_unix_ns = run->ended_realtime_ns;
	entry->ran_on = run->ended == 3;
	entry->state = entry->wstatus_known && WIFSIGNALED(run->target_wstatus) ? STORE_KILLED
										: STORE_ENDED;
}

static void discover_look_inside(struct look *look)
{
	struct store_entry *entry = look->entry;
	struct run_files_list list = { 0 };

	look->has_run = run_files_head(&look->source, "run", KYMO_MAGIC_RUN, &look->run,
				       sizeof(look->run));
	if (look->has_run)
		look_at_run(look);
	look->same_boot = !run_files_is_snapshot(&look->source) &&
			  alive_same_boot(look->run.boot_id);
	run_files_processes(&look->source, &list);
	for (size_t i = 0; i < list.count; i++)
		discover_look_at_process(look, list.items[i].name);
	run_files_list_free(&list);
	if (entry->state == STORE_LOST && supervisor_lives(look))
		entry->state = STORE_LIVE;
	if (run_files_is_snapshot(&look->source)) {
		/* A snapshot of a running program ends when it was taken. */
		if (!look->run.ended)
			entry->ended_unix_ns = look->source.snapshot_head.taken_realtime_ns;
		entry->state = entry->state == STORE_LOST ? STORE_ENDED : entry->state;
	}
	if (entry->state == STORE_LIVE)
		entry->ended_unix_ns = 0;
	for (int which = 0; which < 2; which++)
		if (look->source.dirs[which] >= 0)
			entry->bytes += discover_bytes_in(look->source.dirs[which]);
}

static int look_at_file(const char *path, struct store_entry *entry)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	entry->bytes = (uint64_t)st.st_blocks * 512u;
	if (store_kind_is_sql(entry->kind)) {
		entry->started_unix_ns = entry->ended_unix_ns = (uint64_t)st.st_mtim.tv_sec *
									1000000000u +
								(uint64_t)st.st_mtim.tv_nsec;
		entry->state = STORE_ENDED;
	}
	return 0;
}

/* ---- a job -------------------------------------------------------------------------------- */

static void discover_add_to_job(struct store_entry *job, const struct store_entry *run)
{
	bool first = !job->runs++;

	if (first || run->started_unix_ns < job->started_unix_ns)
		job->started_unix_ns = run->started_unix_ns;
	if (run->ended_unix_ns > job->ended_unix_ns)
		job->ended_unix_ns = run->ended_unix_ns;
	if (first || run->state == STORE_LIVE ||
	    (job->state != STORE_LIVE && run->state != STORE_ENDED))
		job->state = run->state;
	/* A failure of any of them is that of the job. */
	if (run->wstatus_known && (first || (run->wstatus && !job->wstatus))) {
		job->wstatus_known = true;
		job->wstatus = run->wstatus;
	}
	if (!job->program[0])
		memcpy(job->program, run->program, sizeof(job->program));
	job->bytes += run->bytes;
	job->here |= run->here;
	job->live_runs += run->state == STORE_LIVE;
}

struct discover_runs {
	char (*paths)[KYMO_PATH_BYTES];
	struct store_entry *runs;
	size_t count;
};

static void discover_look_at_run(size_t i, void *context)
{
	const struct discover_runs *all = context;

	if (discover_inspect(all->paths[i], true, &all->runs[i]))
		all->runs[i].kind = STORE_NONE;
}

static void discover_take_runs(struct discover_runs *all, struct store_entry *job)
{
	parallel_each(all->count, discover_look_at_run, all);
	for (size_t i = 0; i < all->count; i++)
		if (all->runs[i].kind == STORE_DIRECTORY)
			discover_add_to_job(job, &all->runs[i]);
	all->count = 0;
}

static bool discover_name_run(const struct store_entry *job, const struct dirent *name,
			      char out[KYMO_PATH_BYTES])
{
	char path[KYMO_PATH_BYTES + 256];

	snprintf(path, sizeof(path), "%s/%s", job->path, name->d_name);
	if (name->d_name[0] == '.' || strlen(path) >= KYMO_PATH_BYTES ||
	    (name->d_type != DT_DIR && name->d_type != DT_UNKNOWN))
		return false;
	strcpy(out, path);
	return true;
}

/* Its recordings as one entry; some are looked at together. */
static void discover_look_at_job(struct store_entry *entry)
{
	DIR *dir = opendir(entry->path);
	struct discover_runs all = { .paths = calloc(RUNS_AT_ONCE, sizeof(*all.paths)),
				     .runs = calloc(RUNS_AT_ONCE, sizeof(*all.runs)) };
	struct dirent *name;

	entry->state = STORE_ENDED;
	while (dir && all.paths && all.runs && (name = readdir(dir))) {
		all.count += discover_name_run(entry, name, all.paths[all.count]);
		if (all.count == RUNS_AT_ONCE)
			discover_take_runs(&all, entry);
	}
	if (all.count)
		discover_take_runs(&all, entry);
	if (entry->state == STORE_LIVE)
		entry->ended_unix_ns = 0;
	free(all.paths);
	free(all.runs);
	if (dir)
		closedir(dir);
}

int discover_inspect(const char *path, bool other_dir, struct store_entry *entry)
{
	struct kymo_error err = { 0 };
	struct look *look;
	char whole[PATH_MAX];

	memset(entry, 0, sizeof(*entry));
	entry->state = STORE_LOST;
	if (!realpath(path, whole) || strlen(whole) >= sizeof(entry->path))
		return -ENOENT;
	strcpy(entry->path, whole);
	entry->kind = store_kind(whole, &err);
	if (entry->kind == STORE_NONE) {
		utf8_repair(err.text, strlen(err.text), entry->unreadable,
			    sizeof(entry->unreadable));
		return err.code == EPROTO || err.code == EACCES ? -err.code : -ENOENT;
	}
	if (entry->kind == STORE_JOB) {
		discover_look_at_job(entry);
		return 0;
	}
	if (entry->kind != STORE_DIRECTORY && look_at_file(whole, entry))
		return -ENOENT;
	look = store_kind_is_sql(entry->kind) ? NULL : calloc(1, sizeof(*look));
	if (!look)
		return store_kind_is_sql(entry->kind) ? 0 : -ENOMEM;
	look->entry = entry;
	if (!run_files_open(&look->source, whole, NULL)) {
		discover_look_inside(look);
		if (entry->kind == STORE_DIRECTORY)
			strcpy(entry->path,
			       look->source.dir_paths[other_dir && look->source.dirs[1] >= 0]);
		run_files_close(&look->source);
	}
	free(look);
	return 0;
}

/* ---- listing all ------------------------------------------------------------------------- */

struct listing {
	struct store_entry *entries;
	size_t count, room;
	bool failed;
	bool foreign; /* what is found now */
	bool here;
};

/* NULL: none. */
static struct store_entry *listed_entry(const struct listing *listing, const char *path)
{
	for (size_t i = 0; i < listing->count; i++)
		if (!strcmp(listing->entries[i].path, path))
			return &listing->entries[i];
	return NULL;
}

static void discover_consider(struct listing *listing, const char *path)
{
	struct store_entry *entry, *listed;

	if (!grow((void **)&listing->entries, &listing->room, listing->count,
		  sizeof(*listing->entries))) {
		listing->failed = true;
		return;
	}
	entry = &listing->entries[listing->count];
	if (discover_inspect(path, true, entry) == -ENOENT)
		return;
	listed = listed_entry(listing, entry->path);
	if (!listed) {
		entry->foreign = listing->foreign;
		listing->count++;
		listed = entry;
	}
	listed->here |= listing->here;
}

static bool looks_like_run(int directory, const char *name)
{
	int fd = openat(directory, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool found = dir && (!faccessat(fd, "run", F_OK, 0) || job_is(fd));

	for (int i = 0; dir && !found && i < LOOK_AT && (entry = readdir(dir)); i++)
		found = run_files_is_process(entry->d_name, NULL);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
	return found;
}

/* Other files of a working directory are not opened. */
static bool looks_like_file(const char *name)
{
	static const char *const endings[] = { ".kymo", ".ksnap", ".kymosnap", ".ntff" };
	size_t bytes = strlen(name);

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (bytes > strlen(endings[i]) && name[0] != '.' &&
		    !strcmp(name + bytes - strlen(endings[i]), endings[i]))
			return true;
	return false;
}

static void discover_list_directory(struct listing *listing, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char inner[KYMO_PATH_BYTES + 256];

		if (!looks_like_file(entry->d_name) &&
		    (entry->d_name[0] == '.' ||
		     (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
		     !looks_like_run(dirfd(dir), entry->d_name)))
			continue;
		snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
		discover_consider(listing, inner);
	}
	if (dir)
		closedir(dir);
}

static void list_index(struct listing *listing)
{
	char *text = discover_index_text();
	char *rest = text, *line;

	while ((line = discover_next_line(&rest)))
		if (*line == '/')
			discover_consider(listing, line);
	free(text);
}

static int discover_live_then_newest(const void *left, const void *right)
{
	const struct store_entry *a = left, *b = right;

	if ((a->state == STORE_LIVE) != (b->state == STORE_LIVE))
		return a->state == STORE_LIVE ? -1 : 1;
	if (a->started_unix_ns != b->started_unix_ns)
		return a->started_unix_ns > b->started_unix_ns ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->path, b->path);
}

static bool is_refused(const char *directory)
{
	struct safe_dir dir;
	int rc = safe_dir_open(&dir, directory, 0, NULL);

	safe_dir_close(&dir);
	return rc == -EPERM;
}

int store_list(struct store_entry **out, size_t *out_count, struct kymo_error *err)
{
	struct listing listing = { 0 };
	struct paths_roots roots;
	int rc = paths_roots(&roots, err);

	*out = NULL;
	*out_count = 0;
	for (size_t i = 0; i < roots.count; i++)
		discover_list_directory(&listing, roots.path[i]);
	listing.foreign = is_refused(".");
	listing.here = true;
	discover_list_directory(&listing, ".");
	listing.foreign = listing.here = false;
	list_index(&listing);
	/* An unusable KYMO_DIR hides its recordings: an error only if there is nothing to show. */
	if (listing.failed)
		rc = error_set(err, ENOMEM, "out of memory for the list of recordings");
	else if (listing.count)
		rc = 0;
	if (rc) {
		free(listing.entries);
		return rc;
	}
	if (listing.count)
		qsort(listing.entries, listing.count, sizeof(*listing.entries),
		      discover_live_then_newest);
	*out = listing.entries;
	*out_count = listing.count;
	return 0;
}

/* ---- recordings of jobs ------------------------------------------------------------------- */

/* The directory that the recording is in, if that is a job. */
static bool discover_job_of(const struct store_entry *entry, char out[KYMO_PATH_BYTES])
{
	const char *slash = strrchr(entry->path, '/');
	int directory;
	bool job;

	if (entry->kind != STORE_DIRECTORY || !slash || slash == entry->path)
		return false;
	snprintf(out, KYMO_PATH_BYTES, "%.*s", (int)(slash - entry->path), entry->path);
	directory = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	job = directory >= 0 && job_is(directory);
	if (directory >= 0)
		close(directory);
	return job;
}

void store_list_jobs(struct store_entry *entries, size_t *count)
{
	struct listing kept = { .entries = entries };
	char path[KYMO_PATH_BYTES];
	struct store_entry job;

	for (size_t i = 0; i < *count; i++) {
		struct store_entry *entry = &entries[i], *listed;

		if (discover_job_of(entry, path)) {
			listed = listed_entry(&kept, path);
			if (listed) {
				listed->here |= entry->here;
				continue;
			}
			if (!discover_inspect(path, true, &job)) {
				job.here = entry->here;
				job.foreign = entry->foreign;
				*entry = job;
			}
		}
		/* The job itself may come later in the list. */
		if (!listed_entry(&kept, entry->path))
			memmove(&entries[kept.count++], entry, sizeof(*entry));
	}
	*count = kept.count;
	qsort(entries, kept.count, sizeof(*entries), discover_live_then_newest);
}
