/* `kymo run`: starts a program, observes it from outside, and moves its rows to the disk. */
#ifndef KYMO_COLLECT_COLLECT_H
#define KYMO_COLLECT_COLLECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/format.h"
#include "collect/budget.h"
#include "collect/keep_rules.h"

#define COLLECT_VARIABLES 24

struct collect_options {
	char **argv; /* the command, NULL-terminated */
	const char *directory; /* the disk directory: missing or empty; NULL: ./kymo-DATE-PID */
	const char *name; /* of the run, for lists; NULL: none */
	const char *job; /* id of the job that it is a part of; NULL: none */
	int rank; /* for the name of another directory; -1: none */
	/* If the directory is taken or cannot be written, use another one and report it. */
	bool elsewhere;
	enum kymo_keep keep;
	struct keep_rules keep_rules; /* with KYMO_KEEP_ALL */
	struct budget budget;
	/* more "NAME=value" for the program, NULL-terminated, at most COLLECT_VARIABLES; NULL:
	   none */
	const char *const *environment;
	int hold[3]; /* descriptors of the caller that stay open; 0: none */
	uint64_t slow_ns; /* sample when a zone or step is open for longer; 0: never */
	bool no_native; /* no samples of native stacks */
	double max_overhead; /* a share of the time, such as 0.01; 0: no limit */
	/* Called when the program has started, with the live directory, and when it has ended,
	   before the last data is moved. May be NULL. */
	void (*started)(void *context, const char *live);
	void (*ended)(void *context);
	void *context;
};

struct collect_result {
	char directory[KYMO_PATH_BYTES]; /* the disk directory, as the user would type it */
	char live[KYMO_PATH_BYTES]; /* the live directory if it still has data; else "" */
	/* errno of a command that could not start; the other fields are then not set */
	int exec_error;
	int wstatus; /* as from waitpid() */
	uint64_t duration_ns;
	uint64_t processes; /* of the program that recorded */
	uint64_t rows; /* published by those that have ended */
	uint64_t sampled; /* Python stacks */
	uint64_t sampled_native; /* native stacks */
	char native_refused[1024]; /* why there are none; "": there are, or they were not wanted */
	uint64_t removed_segments; /* removed to keep the disk budget */
	uint64_t not_recorded; /* children that did not record */
	char not_recorded_names[128]; /* of some of them */
	unsigned still_running; /* recorded children that are still running */
	pid_t still_running_pid; /* one of them */
	bool ended; /* attach: the program has ended */
	int move_error; /* a negative errno: not all data could be moved to the disk */
};

/*
 * Runs the command to its end. 0 and *result, or a negative errno and *err if it was not started.
 * The program gets the same arguments, descriptors, signal mask, dispositions, umask, process group
 * and session as without kymo; its environment additionally has KYMO, KYMO_RUN, KYMO_KEEP and
 * KYMO_BUDGET.
 */
int collect_run(const struct collect_options *options, struct collect_result *result,
		struct kymo_error *err);
struct attach_options {
	pid_t pid;
	uint64_t starttime; /* identifies the process with the pid */
	const char *directory; /* as above */
	uint64_t duration_ns; /* 0: until the program ends or a signal arrives */
	struct budget budget;
	/* The recording of a program that already records, to be joined. NULL: make a new one. */
	const char *live; /* the live directory */
	const char *disk; /* the disk directory, if an earlier supervisor has ended; NULL: none */
	enum kymo_keep keep;
	const struct kymo_control *settings; /* the stored settings; NULL: none */
	uint64_t slow_ns; /* as above */
	bool no_native; /* as above */
	int start_lock; /* closed when other commands can find the recording; -1: none */
};

/* Records a running process from outside until it ends, a signal arrives or the time is over. 0 and
   *result, or a negative errno and *err. The process is never stopped or modified. result->wstatus
   is not set, because the process is not our child. */
int collect_attach(const struct attach_options *options, struct collect_result *result,
		   struct kymo_error *err);
/* Ends this process with the status or signal of the program, without a core file. Never
   returns. */
void collect_end_like(int wstatus) __attribute__((noreturn));

#endif
