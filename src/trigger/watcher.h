/*
 * The process that watches the triggers of a run: beside the collector, never in the program. It
 * asks each condition when it is due (condition.h), starts actions (action.h) and writes
 * kymo.triggers as a process of its own in the run.
 */
#ifndef KYMO_TRIGGER_WATCHER_H
#define KYMO_TRIGGER_WATCHER_H

#include "base/error.h"

/* The share of a core that conditions may use together; beyond it they are asked less often. */
#define WATCHER_SHARE 0.005

struct watcher_options {
	const char *live; /* directory with the definitions */
	const char *kymo; /* this program, for actions */
	const char *directory; /* of saved files; NULL: `triggers` in the recording's directory */
	int note_fd; /* gets one byte when the watcher is ready; -1: none */
};

/* Returns when the run has ended, or after SIGTERM. 0, or a negative errno and *err if it cannot
   watch. */
int watcher_run(const struct watcher_options *options, struct kymo_error *err);

#endif
