/* kymo run --torch: variables for torch in the program. */
#ifndef KYMO_CMDS_RUN_RUN_TORCH_H
#define KYMO_CMDS_RUN_RUN_TORCH_H

#include <stdbool.h>

#include "cmds/run/run_python.h"

struct run_torch {
	/* requested by an option. Modules are also recorded by default, but then a failure is not
	   reported. */
	bool on;
	const char *modules; /* as typed; NULL: not given */
	const char *every;
	const char *ops; /* "64", "all", …; NULL: not requested */
	const char *peak; /* a number, or "measure" */
	char watch[256];
};

/* Adds a variable such as loss@train_step. -1, or the exit status if it is invalid. */
int run_torch_watch(struct run_torch *torch, const char *words);
/* all, a number of steps, or nothing; and a number of FLOP/s, or measure. As above. */
int run_torch_ops(struct run_torch *torch, const char *word);
int run_torch_peak(struct run_torch *torch, const char *word);
/* Checks the options and sets variables for the program. Modules of a Python program are recorded
   without an option, too. -1, or the exit status. */
int run_torch_prepare(const struct run_torch *torch, char *const *argv,
		      struct run_environment *environment);

#endif
