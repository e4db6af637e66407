/* kymo run --trigger, --triggers and --action: conditions that are watched while the program
   runs. */
#ifndef KYMO_CMDS_RUN_RUN_TRIGGER_H
#define KYMO_CMDS_RUN_RUN_TRIGGER_H

#include <sys/types.h>

#include "trigger/trigger.h"

struct run_trigger {
	struct trigger_set set;
	const char *actions[TRIGGER_ACTIONS];
	size_t action_count;
	pid_t watcher; /* 0: none */
};

/* Each returns -1, or the exit status. */
int run_trigger_add(struct run_trigger *run, const char *word);
int run_trigger_file(struct run_trigger *run, const char *path);
int run_trigger_action(struct run_trigger *run, const char *action);
/* After all options: gives the actions to the triggers of --trigger and checks the conditions. */
int run_trigger_ready(struct run_trigger *run);
/* For struct collect_options; context is the run_trigger. A failure is reported, and the program
   runs on. */
void run_trigger_started(void *context, const char *live);
void run_trigger_ended(void *context);
void run_trigger_fini(struct run_trigger *run);

#endif
