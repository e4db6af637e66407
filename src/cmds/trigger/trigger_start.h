/* Starts the process that watches the triggers of a run (trigger/watcher.h). */
#ifndef KYMO_CMDS_TRIGGER_TRIGGER_START_H
#define KYMO_CMDS_TRIGGER_TRIGGER_START_H

#include <sys/types.h>

#include "base/error.h"
#include "trigger/trigger.h"

/* Waits until it watches. 0 and *out_pid, or a negative errno and *err. detach: it survives this
   process's terminal and group. */
int trigger_start(const char *live, bool detach, pid_t *out_pid, struct kymo_error *err);
/* Checks all conditions of a set before a program starts, over an empty recording, in a child. 0,
   or a negative errno and DuckDB's message. */
int trigger_check_all(const struct trigger_set *set, struct kymo_error *err);
/* kymo watch-triggers LIVE NOTE-FD; not for people. */
int trigger_watch_main(int argc, char **argv);

#endif
