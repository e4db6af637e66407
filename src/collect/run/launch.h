/* Starting the program as if we were not there. */
#ifndef KYMO_COLLECT_RUN_LAUNCH_H
#define KYMO_COLLECT_RUN_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

/* What was set before kymo changed it for itself: the program gets it back. */
struct launch_signals {
	sigset_t mask;
	struct sigaction child; /* SIGCHLD */
};

/* Opens /dev/null in place of standard descriptors that are closed, so that no file of ours can
   land there. They are closed again in the program. */
void launch_hold_standard_files(void);
/* Blocks all signals that can be passed on, and makes sure that children can be waited for. */
void launch_block_signals(struct launch_signals *saved);
void launch_restore_signals(const struct launch_signals *saved);
/* 0 and *out_pid, or a negative errno: of fork(), or of the exec (*out_exec_failed is 1 then).
   `additions` are "NAME=value", ended by NULL. Returns when the program itself runs. */
int launch_program(char *const *argv, const char *const *additions,
		   const struct launch_signals *saved, pid_t *out_pid, int *out_exec_failed);

#endif
