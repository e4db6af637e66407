/* kymo run --torch: what is asked of torch in the program. */
#ifndef KYMO_CMDS_RUN_RUN_TORCH_H
#define KYMO_CMDS_RUN_RUN_TORCH_H

#include <stdbool.h>

#include "cmds/run/run_python.h"

struct run_torch {
	/* asked for by name: without that, too, modules are recorded, but nothing is said where
	   they cannot be */
	bool on;
	const char *modules; /* as they were typed; NULL: not said */
	const char *every;
	char watch[256];
};

/* Another variable, as loss@train_step. -1, or the exit status of wrong use. */
int run_torch_watch(struct run_torch *torch, const char *words);
/* What the options say together, into variables. Where nobody asked and the program is Python,
   modules are recorded too. -1, or the exit status. */
int run_torch_prepare(const struct run_torch *torch, char *const *argv,
		      struct run_environment *environment);

#endif
