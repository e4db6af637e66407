/*
 * The threads of a process: rows of host.threads, and the sum of their context switches. A thread that has not run since
 * the last look costs one small file (schedstat: the time it ran, to the nanosecond); only of those that ran is more
 * read.
 */
#ifndef KYMO_COLLECT_TASKS_H
#define KYMO_COLLECT_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tasks_one {
	pid_t tid;
	uint32_t seen; /* the look that saw it last */
	uint64_t run_ns, slices; /* as schedstat says */
	uint64_t voluntary, involuntary;
	bool was_busy; /* its last row was not of 0 % */
	char state;
	char name[16];
};

struct tasks {
	struct tasks_one *all; /* sorted by tid */
	size_t count, room;
	uint32_t looks;
	uint64_t looked_ns;
	uint64_t ended_voluntary, ended_involuntary; /* of threads that are gone */
};

/* What /proc/PID/task/TID/schedstat says: "run_ns wait_ns slices". False: something else. */
bool tasks_parse_schedstat(const char *text, uint64_t *out_run_ns, uint64_t *out_slices);
/* "running", "sleeping", …; "?" for a letter that is not known. */
const char *tasks_state_word(char state);
/* Writes a row of each thread that ran since the last look, or is new, or was busy before it. */
void tasks_look(struct tasks *tasks, pid_t pid, uint64_t now_ns);
/* Of all threads, those that are gone included. */
void tasks_switches(const struct tasks *tasks, uint64_t *out_voluntary, uint64_t *out_involuntary);
void tasks_fini(struct tasks *tasks); /* zeros are fine */

#endif
