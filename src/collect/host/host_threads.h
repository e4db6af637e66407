/*
 * The threads of a process: rows of host.threads, and the sum of their context switches. A thread
 * that has not run since the last sample costs one read of a small file (schedstat: its run time in
 * nanoseconds); more files are read only for threads that ran.
 */
#ifndef KYMO_COLLECT_HOST_HOST_THREADS_H
#define KYMO_COLLECT_HOST_HOST_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct host_threads_one {
	pid_t tid;
	uint32_t seen; /* number of the last sample that found it */
	uint64_t run_ns, delay_ns, slices; /* from schedstat */
	uint64_t voluntary, involuntary;
	bool was_busy; /* its last row was above 0 % */
	char state;
	char name[16];
};

struct host_threads {
	struct host_threads_one *all; /* sorted by tid */
	size_t count, room;
	uint32_t looks;
	uint64_t looked_ns;
	/* of threads that have ended */
	uint64_t ended_voluntary, ended_involuntary, ended_delay_ns;
};

/* What the kernel counts for a thread since it began. */
struct host_threads_schedule {
	uint64_t run_ns;
	uint64_t delay_ns; /* ready to run, but without a core */
	uint64_t slices;
};

/* What a thread waits for, in words; collect/wait knows. */
struct host_threads_wait {
	const char *activity;
	char target[96]; /* "": not known */
};
/* Sets the function that tells; NULL: rows have no activity. */
void host_threads_set_wait(void (*wait)(pid_t pid, pid_t tid, char state,
					struct host_threads_wait *out));

/* Parses /proc/PID/task/TID/schedstat: "run_ns wait_ns slices". False: invalid. */
bool host_threads_parse_schedstat(const char *text, struct host_threads_schedule *out);
/* "running", "sleeping", …; "?" for an unknown letter. */
const char *host_threads_state_word(char state);
/* Writes a row for each thread that ran since the last sample, is new, or was busy in the last
   sample. */
void host_threads_look(struct host_threads *threads, pid_t pid, uint64_t now_ns);
/* The sum for all threads, including those that have ended. */
void host_threads_switches(const struct host_threads *threads, uint64_t *out_voluntary,
			   uint64_t *out_involuntary);
uint64_t host_threads_delay_ns(const struct host_threads *threads);
void host_threads_fini(struct host_threads *threads); /* a zeroed struct is valid */

#endif
