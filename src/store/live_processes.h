/* The running processes of a recording, for commands that change it (config, attach) and for
   lists. */
#ifndef KYMO_STORE_LIVE_PROCESSES_H
#define KYMO_STORE_LIVE_PROCESSES_H

#include "base/files/run_files.h"
#include "store/store.h"

struct live_process {
	char name[RUN_FILES_PATH_BYTES]; /* of its directory */
	struct kymo_control control; /* a copy; only its header is checked */
};

struct live_processes {
	char directory[KYMO_PATH_BYTES]; /* the live directory */
	char disk[KYMO_PATH_BYTES]; /* the directory on disk; "": none */
	struct kymo_run_file run; /* all 0 if the file is missing */
	bool supervised; /* a collector runs: run.supervisor_pid */
	struct live_process *processes;
	size_t count;
};

/* Opens a recording by its path. Returns 0, or a negative errno and *err. A dead one has no
   processes. */
int live_processes_open(const char *path, struct live_processes *out, struct kymo_error *err);
/* Opens the recording of a process. Compares more than the pid, since pids are reused and differ
   inside containers. -ENOENT: the process is not recorded; -ESRCH: there is no such process. */
int live_processes_open_pid(int32_t pid, struct live_processes *out, struct kymo_error *err);
void live_processes_close(struct live_processes *live); /* an all-zero one is fine */
/* The process with that pid in our namespace; NULL: none. */
const struct live_process *live_processes_find(const struct live_processes *live, int32_t pid);
/* A collector: the original one or one that attached; NULL: none. */
const struct live_process *live_processes_collector(const struct live_processes *live);

#endif
