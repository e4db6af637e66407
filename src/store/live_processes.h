/* The processes of a recording that run now: for what writes into it from outside (config, attach)
   and for lists. */
#ifndef KYMO_STORE_LIVE_PROCESSES_H
#define KYMO_STORE_LIVE_PROCESSES_H

#include "base/files/run_files.h"
#include "store/store.h"

struct live_process {
	char name[RUN_FILES_PATH_BYTES]; /* of its directory */
	struct kymo_control control; /* a copy; not checked beyond its head */
};

struct live_processes {
	char directory[KYMO_PATH_BYTES]; /* the live half */
	char disk[KYMO_PATH_BYTES]; /* the other half; "" where there is none */
	struct kymo_run_file run; /* zeros where the file is missing */
	bool supervised; /* a supervisor runs: run.supervisor_pid */
	struct live_process *processes;
	size_t count;
};

/* Of a recording's path. 0, or a negative errno and *err. A dead one has no processes. */
int live_processes_open(const char *path, struct live_processes *out, struct kymo_error *err);
/* Of a process, by what it is rather than by its number: pids are used again, and are others inside
   of a container. -ENOENT: it runs and nothing records it; -ESRCH: there is no such process, or it
   has ended. */
int live_processes_open_pid(int32_t pid, struct live_processes *out, struct kymo_error *err);
void live_processes_close(struct live_processes *live); /* zeros are fine */
/* The one that is the process `pid` here; NULL: none. */
const struct live_process *live_processes_find(const struct live_processes *live, int32_t pid);
/* A collector: the supervisor, or one that joined; NULL: nobody samples. */
const struct live_process *live_processes_collector(const struct live_processes *live);

#endif
