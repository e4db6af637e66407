#include "store/live_processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/paths.h"
#include "base/grow.h"
#include "store/alive.h"
#include "store/discover.h"

static bool runs(const struct kymo_control *control)
{
	return !control->ended &&
	       alive_process(control->pid, control->starttime, control->pid_namespace);
}

/* After exec, only the latest program of a process is running. */
static void drop_earlier_life(struct live_processes *live)
{
	const struct live_process *last = &live->processes[live->count - 1];

	for (size_t i = 0; i + 1 < live->count; i++)
		if (live->processes[i].control.pid == last->control.pid &&
		    live->processes[i].control.starttime == last->control.starttime) {
			live->processes[i] = *last;
			live->count--;
			return;
		}
}

static int live_processes_add_process(struct live_processes *live, const struct run_files *source,
				      const char *name)
{
	char path[RUN_FILES_PATH_BYTES + 16];
	struct live_process *added;

	if (!grow_short((void **)&live->processes, live->count, sizeof(*live->processes)))
		return -ENOMEM;
	added = &live->processes[live->count];
	memset(added, 0, sizeof(*added));
	snprintf(added->name, sizeof(added->name), "%s", name);
	snprintf(path, sizeof(path), "%s/control", name);
	if (run_files_head(source, path, KYMO_MAGIC_CONTROL, &added->control,
			   sizeof(added->control)) &&
	    runs(&added->control)) {
		live->count++;
		drop_earlier_life(live);
	}
	return 0;
}

static int live_processes_gather(struct live_processes *live, const struct run_files *source)
{
	struct run_files_list list = { 0 };
	int rc = run_files_processes(source, &list);

	for (size_t i = 0; i < list.count && !rc; i++)
		rc = live_processes_add_process(live, source, list.items[i].name);
	run_files_list_free(&list);
	return rc;
}

int live_processes_open(const char *path, struct live_processes *out, struct kymo_error *err)
{
	struct run_files source;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = run_files_open(&source, path, err);
	if (rc)
		return rc;
	if (!run_files_is_snapshot(&source)) {
		memcpy(out->directory, source.dir_paths[0], sizeof(out->directory));
		if (source.dirs[1] >= 0)
			memcpy(out->disk, source.dir_paths[1], sizeof(out->disk));
		if (!run_files_head(&source, "run", KYMO_MAGIC_RUN, &out->run, sizeof(out->run)))
			memset(&out->run, 0, sizeof(out->run));
		out->run.boot_id[sizeof(out->run.boot_id) - 1] = '\0';
		if (alive_same_boot(out->run.boot_id))
			rc = live_processes_gather(out, &source);
		out->supervised = !rc && out->run.supervised && !out->run.ended &&
				  alive_same_boot(out->run.boot_id) &&
				  alive_process(out->run.supervisor_pid,
						out->run.supervisor_starttime, 0);
	}
	run_files_close(&source);
	if (rc) {
		live_processes_close(out);
		error_set(err, -rc, "cannot read the directory %s: %s", path, strerror(-rc));
	}
	return rc;
}

static uint64_t live_processes_namespace_of(int32_t pid)
{
	char path[48];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &st) ? 0 : (uint64_t)st.st_ino;
}

const struct live_process *live_processes_find(const struct live_processes *live, int32_t pid)
{
	uint64_t starttime = paths_starttime(pid), inner = live_processes_namespace_of(pid);

	for (size_t i = 0; i < live->count; i++) {
		const struct kymo_control *control = &live->processes[i].control;

		/* In a container its pid differs, and its start time is the same. */
		if (control->starttime == starttime &&
		    (inner && control->pid_namespace ? control->pid_namespace == inner
						     : control->pid == pid) &&
		    (control->pid == pid || inner != live_processes_namespace_of(getpid())))
			return &live->processes[i];
	}
	return NULL;
}

/* Recorded from outside: it has no control page. */
static bool is_target_of(const struct live_processes *live, int32_t pid)
{
	return live->supervised && live->run.target_pid == pid &&
	       live->run.target_starttime == paths_starttime(pid);
}

int live_processes_open_pid(int32_t pid, struct live_processes *out, struct kymo_error *err)
{
	struct store_entry *entries = NULL;
	size_t count = 0;
	bool found = false;

	memset(out, 0, sizeof(*out));
	if (!alive_process(pid, paths_starttime(pid), 0))
		return error_set(err, ESRCH, "there is no process %d; `kymo ls` lists recordings",
				 (int)pid);
	store_list(&entries, &count, NULL); /* an unreadable KYMO_DIR contains none */
	for (size_t i = 0; i < count && !found; i++) {
		if (entries[i].kind != STORE_DIRECTORY || entries[i].state != STORE_LIVE ||
		    live_processes_open(entries[i].path, out, NULL))
			continue;
		found = live_processes_find(out, pid) || is_target_of(out, pid);
		if (!found)
			live_processes_close(out);
	}
	free(entries);
	if (found)
		return 0;
	return error_set(err, ENOENT,
			 "process %d does not record; use `kymo attach %d` to watch it, or start "
			 "it with `kymo run -- …` or KYMO=on",
			 (int)pid, (int)pid);
}

const struct live_process *live_processes_collector(const struct live_processes *live)
{
	for (size_t i = 0; i < live->count; i++)
		if (live->processes[i].control.role == KYMO_ROLE_COLLECTOR)
			return &live->processes[i];
	return NULL;
}

void live_processes_close(struct live_processes *live)
{
	free(live->processes);
	memset(live, 0, sizeof(*live));
}
