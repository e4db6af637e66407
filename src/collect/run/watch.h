/*
 * The program as its parent sees it: signals that come for it, its stops, its end. All signals are
 * blocked and arrive by a descriptor, so nothing is lost between two looks, and nothing interrupts
 * us.
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
	struct witness witness; /* the owner starts it, before the program */
	int pidfd; /* of a program that is not our child; -1: it is */
	bool told_to_end; /* by a signal that we would pass on to our child */
	bool ended; /* it is a zombie: of our child, wstatus and usage hold */
	int wstatus;
	struct rusage usage;
};

/* Signals must be blocked already (launch.h). 0 or a negative errno. */
int watch_init(struct watch *watch);
/* For a program that somebody else started: signals are for us, and it is only looked at. 0, or
   -ESRCH: it has ended. */
int watch_attach(struct watch *watch, pid_t target, uint64_t starttime);
/* Waits for signals, at most so long, and passes them on. */
void watch_wait(struct watch *watch, int timeout_ms);
/* Takes the zombie away. */
void watch_reap(struct watch *watch);
/* Drops what came too late for the program. */
void watch_drain(struct watch *watch);
void watch_fini(struct watch *watch);

#endif
