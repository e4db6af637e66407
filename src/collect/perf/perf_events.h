/*
 * Samples of a program's registers and stacks, taken by the kernel: the software clock of CPU time,
 * inherited by threads and children, in one ring for each processor. The program is not stopped and
 * no code runs in it. Works without privileges where kernel.perf_event_paranoid is at most 2.
 *
 * Two events for each processor. One has a sample every millisecond of CPU time. It is not
 * inherited by children (it would make an exec and an exit of 0.5 ms 5 % longer) and is closed
 * after 300 samples, or a second. The other one has a sample every 10 ms and stays.
 */
#ifndef KYMO_COLLECT_PERF_PERF_EVENTS_H
#define KYMO_COLLECT_PERF_PERF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/perf/perf_record.h"

#define PERF_EVENTS_FIRST_NS 1000000ull
#define PERF_EVENTS_NS 10000000ull
#define PERF_EVENTS_FIRST_MOST 300u /* samples */
#define PERF_EVENTS_FIRST_FOR_NS 1000000000ull

struct perf_ring {
	int cpu;
	void *memory; /* a page of positions, then the data */
	uint64_t data_bytes; /* a power of two */
	uint64_t head; /* as of the last look */
	uint64_t tail; /* read up to here */
	int fd; /* of the event that owns it */
	bool ended; /* all its threads have ended: poll() would return at once */
	unsigned char *wrapped; /* a copy of a record that wraps */
};

struct perf_events {
	struct perf_ring *rings;
	size_t ring_count;
	int *fast; /* events of the first samples */
	size_t fast_count, fast_room;
	pid_t *fast_pids; /* the processes that have them */
	size_t fast_pid_count, fast_pid_room;
	bool fast_in_children; /* the kernel lets them inherit */
	bool slowed; /* the time of the first samples is over: no more fast events */
	int *slow; /* all others, those that own rings among them */
	size_t slow_count, slow_room;
	bool with_kernel; /* samples in the kernel count, too */
	bool on_exec; /* starts with the exec of the process */
	uint32_t stack_bytes; /* copied of each stack */
};

/* Opens events for a process that has not yet called exec and is to be sampled from there on. 0, or
   a negative errno and *err: a sentence with the setting that allows it. */
int perf_events_open_child(struct perf_events *events, pid_t pid, uint32_t stack_bytes,
			   struct kymo_error *err);
/* Opens events for all threads of a running process, and starts them. */
int perf_events_open_process(struct perf_events *events, pid_t pid, uint32_t stack_bytes,
			     struct kymo_error *err);
/* Adds a process of the same family, which started before the events did. */
int perf_events_add_process(struct perf_events *events, pid_t pid, struct kymo_error *err);
/* Whether the process has, or had, fast events. */
bool perf_events_is_fast(const struct perf_events *events, pid_t pid);
/* Closes the fast events; processes that are added later get none. */
void perf_events_slow_down(struct perf_events *events);
/* Stops all events, or starts them again; children that began meanwhile are included. */
void perf_events_pause(struct perf_events *events, bool paused);
/* Waits until a ring is filled by half or wake_fd is readable, at most that long. */
void perf_events_wait(struct perf_events *events, int wake_fd, int timeout_ms);
/* The records up to this moment: call begin, then next for each ring until it returns false, then
   end, which gives the space back. A record is valid until the next call for its ring. */
void perf_events_begin(struct perf_events *events);
bool perf_events_next(struct perf_events *events, size_t ring, const void **out_record,
		      size_t *out_bytes);
void perf_events_end(struct perf_events *events);
void perf_events_close(struct perf_events *events);
/* Whether it works here: opens an event for this process. 0, or a negative errno and *err. */
int perf_events_check(struct kymo_error *err);

#endif
