/* The processes of a recording that run now: for what writes into it from outside (config, attach) and for lists. */
#ifndef KYMO_STORE_LIVE_H
#define KYMO_STORE_LIVE_H

#include "base/source.h"
#include "store/store.h"

struct live_process {
	char name[SOURCE_PATH_BYTES]; /* of its directory */
	struct kymo_control control; /* a copy; not checked beyond its head */
};

struct live {
	char directory[KYMO_PATH_BYTES]; /* the live half */
	char disk[KYMO_PATH_BYTES]; /* the other half; "" where there is none */
	struct kymo_run_file run; /* zeros where the file is missing */
	bool supervised; /* a supervisor runs: run.supervisor_pid */
	struct live_process *processes;
	size_t count;
};

/* Of a recording's path. 0, or a negative errno and *err. A dead one has no processes. */
int live_open(const char *path, struct live *out, struct kymo_error *err);
/* Of a process, by what it is rather than by its number: pids are used again, and are others inside of a container.
   -ENOENT: it runs and nothing records it; -ESRCH: there is no such process, or it has ended. */
int live_open_pid(int32_t pid, struct live *out, struct kymo_error *err);
void live_close(struct live *live); /* zeros are fine */
/* The one that is the process `pid` here; NULL: none. */
const struct live_process *live_find(const struct live *live, int32_t pid);
/* A collector: the supervisor, or one that joined; NULL: nobody samples. */
const struct live_process *live_collector(const struct live *live);

#endif
