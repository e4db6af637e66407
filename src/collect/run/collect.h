/* `kymo run`: starts a program, watches it from outside, and brings what it records to disk. */
#ifndef KYMO_COLLECT_RUN_COLLECT_H
#define KYMO_COLLECT_RUN_COLLECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/format.h"
#include "collect/run/budget.h"

#define COLLECT_VARIABLES 16

struct collect_options {
	char **argv; /* the command, ended by NULL */
	const char
		*directory; /* of the recording, on disk: missing or empty; NULL: ./kymo-DATE-PID */
	const char *name; /* of the run, for lists; NULL: none */
	enum kymo_keep keep;
	struct budget budget;
	/* "NAME=value" that the program gets besides, ended by NULL, at most COLLECT_VARIABLES;
	   NULL: none */
	const char *const *environment;
	uint64_t slow_ns; /* a zone or step open for longer is sampled too; 0: none is */
};

struct collect_result {
	char directory[KYMO_PATH_BYTES]; /* of the recording, as the user would type it */
	char live[KYMO_PATH_BYTES]; /* its other half, where something had to stay there; else "" */
	int exec_error; /* errno of a command that could not start: nothing else holds then */
	int wstatus; /* as from waitpid() */
	uint64_t duration_ns;
	uint64_t processes; /* of the program, that recorded */
	uint64_t rows; /* that they published; of those that have ended */
	uint64_t removed_segments; /* for the disk's budget */
	uint64_t not_recorded; /* children that were seen and did not record */
	char not_recorded_names[128]; /* of some of them */
	unsigned still_running; /* recorded children that run on */
	pid_t still_running_pid; /* one of them */
	bool ended; /* attach: the program has ended */
	int move_error; /* a negative errno: not everything could be moved to the disk */
};

/*
 * Runs the command to its end. 0 and *result, or a negative errno and *err: nothing was started
 * then. The program gets the arguments, descriptors, signal mask, dispositions, umask, process
 * group and session that it would have without us; its environment has KYMO, KYMO_RUN, KYMO_KEEP
 * and KYMO_BUDGET besides.
 */
int collect_run(const struct collect_options *options, struct collect_result *result,
		struct kymo_error *err);
struct attach_options {
	pid_t pid;
	uint64_t starttime; /* of the process that was meant */
	const char *directory; /* as above */
	uint64_t duration_ns; /* 0: until it ends, or a signal comes */
	struct budget budget;
	/* Where it records already: it is joined there. NULL: a recording is made. */
	const char *live; /* the live half */
	const char
		*disk; /* the other half, where a supervisor has left both; NULL: there is none */
	enum kymo_keep keep;
	const struct kymo_control *settings; /* what is configured there; NULL: nothing */
	uint64_t slow_ns; /* as above */
};

/* Watches a process that runs, from outside, until one of the ends. 0 and *result, or a negative
   errno and *err. The process is never stopped, and nothing is put into it. result->wstatus does
   not hold: it is not our child. */
int collect_attach(const struct attach_options *options, struct collect_result *result,
		   struct kymo_error *err);
/* Ends this process as the program ended: the same status, or the same signal (without a core).
   Never returns. */
void collect_end_like(int wstatus) __attribute__((noreturn));

#endif
