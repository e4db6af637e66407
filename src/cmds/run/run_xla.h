/* kymo run --xla: windows of XLA's operations in programs that use JAX. */
#ifndef KYMO_CMDS_RUN_RUN_XLA_H
#define KYMO_CMDS_RUN_RUN_XLA_H

#include "cmds/run/run_python.h"

struct run_xla {
	const char *every; /* "64", "all", …; NULL: not requested */
	int file; /* of the windows; 0: none */
};

/* word: all, a number of steps, or NULL. -1, or the exit status if it is invalid. */
int run_xla_option(struct run_xla *xla, const char *word);
/* Creates the file in the directory in which the recording will be, without a name, and sets
   variables for the program. hold: gets its descriptor. -1, or the exit status. */
int run_xla_prepare(struct run_xla *xla, const char *recording, struct run_environment *environment,
		    int *hold);
/* The recording is complete: adds the operations of the windows. An error is reported. */
void run_xla_end(struct run_xla *xla, const char *recording);

#endif
