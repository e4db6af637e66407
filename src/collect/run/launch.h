/* Starts the program with the same inherited state as without kymo. */
#ifndef KYMO_COLLECT_RUN_LAUNCH_H
#define KYMO_COLLECT_RUN_LAUNCH_H

#include <signal.h>
#include <sys/types.h>

/* The signal state before kymo changed it, restored for the program. */
struct launch_signals {
	sigset_t mask;
	struct sigaction child; /* SIGCHLD */
};

/* Opens /dev/null for closed standard descriptors, so that no file of kymo gets these numbers. They
   are closed again in the program. */
void launch_hold_standard_files(void);
/* Blocks all signals that can be passed on, and resets SIGCHLD so that children leave a status. */
void launch_block_signals(struct launch_signals *saved);
void launch_restore_signals(const struct launch_signals *saved);
/* 0 and *out_pid, or a negative errno of fork() or, if *out_exec_failed is 1, of the exec.
   `additions` are "NAME=value", NULL-terminated. Returns after the exec. before_exec: called when
   the process exists, which waits for its return; may be NULL. */
int launch_program(char *const *argv, const char *const *additions,
		   const struct launch_signals *saved,
		   void (*before_exec)(void *context, pid_t pid), void *context, pid_t *out_pid,
		   int *out_exec_failed);

#endif
