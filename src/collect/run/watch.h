/*
 * Supervision of the program by its parent: signals to pass on, stops, the end. All signals are
 * blocked and read from a descriptor, so none is lost and none interrupts the collector.
 */
#ifndef KYMO_COLLECT_RUN_WATCH_H
#define KYMO_COLLECT_RUN_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "collect/run/witness.h"

struct watch {
	pid_t target;
	int signal_fd;
	struct witness witness; /* started by the owner, before the program */
	int pidfd; /* of a program that is not our child; else -1 */
	bool end_requested; /* by a signal; kymo attach does not pass signals on */
	bool ended; /* it is a zombie; wstatus and usage are set if it is our child */
	int wstatus;
	struct rusage usage;
};

/* Signals must be blocked already (launch.h). 0 or a negative errno. */
int watch_init(struct watch *watch);
/* For a program that is not our child: signals end the collector and are not passed on. 0, or
   -ESRCH: the program has ended. */
int watch_attach(struct watch *watch, pid_t target, uint64_t starttime);
/* Waits for signals, at most timeout_ms, and passes them on. */
void watch_wait(struct watch *watch, int timeout_ms);
/* Reaps the zombie. */
void watch_reap(struct watch *watch);
/* Drops signals that arrived after the end of the program. */
void watch_drain(struct watch *watch);
void watch_fini(struct watch *watch);

#endif
