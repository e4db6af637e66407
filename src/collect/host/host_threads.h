/*
 * The threads of a process: rows of host.threads, and the sum of their context switches. A thread
 * that has not run since the last look costs one small file (schedstat: the time it ran, to the
 * nanosecond); only of those that ran is more read.
 */
#ifndef KYMO_COLLECT_HOST_HOST_THREADS_H
#define KYMO_COLLECT_HOST_HOST_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct host_threads_one {
	pid_t tid;
	uint32_t seen; /* the look that saw it last */
	uint64_t run_ns, slices; /* as schedstat says */
	uint64_t voluntary, involuntary;
	bool was_busy; /* its last row was not of 0 % */
	char state;
	char name[16];
};

struct host_threads {
	struct host_threads_one *all; /* sorted by tid */
	size_t count, room;
	uint32_t looks;
	uint64_t looked_ns;
	uint64_t ended_voluntary, ended_involuntary; /* of threads that are gone */
};

/* What /proc/PID/task/TID/schedstat says: "run_ns wait_ns slices". False: something else. */
bool host_threads_parse_schedstat(const char *text, uint64_t *out_run_ns, uint64_t *out_slices);
/* "running", "sleeping", …; "?" for a letter that is not known. */
const char *host_threads_state_word(char state);
/* Writes a row of each thread that ran since the last look, or is new, or was busy before it. */
void host_threads_look(struct host_threads *tasks, pid_t pid, uint64_t now_ns);
/* Of all threads, those that are gone included. */
void host_threads_switches(const struct host_threads *tasks, uint64_t *out_voluntary,
			   uint64_t *out_involuntary);
void host_threads_fini(struct host_threads *tasks); /* zeros are fine */

#endif
