/*
 * Native stacks of threads that wait, from outside and without a stop: the kernel shows the stack
 * pointer and the address of a thread in a system call, and its stack is copied and walked. A
 * thread that has not run since the last look costs one read of a small file; the time between
 * looks grows while nothing changes, and with what a look costs.
 *
 * Threads with Python stacks are left to the Python sampler, which sees them wait, too.
 */
#ifndef KYMO_COLLECT_PERF_NATIVE_WAITS_H
#define KYMO_COLLECT_PERF_NATIVE_WAITS_H

#include "collect/perf/native_rows.h"
#include "collect/wait/wait_kind.h"

struct native_wait_thread;

struct native_waits {
	struct native_wait_thread *threads;
	size_t count, room;
	pid_t *processes;
	size_t process_count, process_room;
	size_t open_count; /* descriptors that are kept */
	struct wait_peers peers;
	unsigned char *stack; /* the copy */
	struct native_walk *walk;
	uint64_t began_ns, next_ns, listed_ns;
	uint64_t cost_ns; /* CPU time of a look */
	unsigned unchanged; /* looks in a row */
	uint64_t stacks, failed; /* taken, and not readable */
};

/* What it needs of its owner. */
struct native_waits_with {
	struct address_spaces *spaces;
	struct native_rows *rows;
	struct recent_stacks *recent; /* may be NULL */
	uint64_t (*ticks_at)(const void *context, uint64_t at_ns);
	uint32_t (*name_of)(void *context, pid_t pid, pid_t tid);
	void *context;
};

/* A process whose threads are looked at, listed at the next look and then every second. Known
   processes may be added again. */
void native_waits_add_process(struct native_waits *waits, pid_t pid);
/* A thread that began; one of a new process adds the process, too. */
void native_waits_add_thread(struct native_waits *waits, pid_t pid, pid_t tid);
/* A thread that ended: what is left of its waits is written. */
void native_waits_end_thread(struct native_waits *waits, const struct native_waits_with *with,
			     pid_t pid, pid_t tid, uint64_t now_ns);
/* The time until the next look, in ms rounded up; 0: now. */
int native_waits_pause_ms(const struct native_waits *waits, uint64_t now_ns);
/* Looks at all threads if it is time. */
void native_waits_look(struct native_waits *waits, const struct native_waits_with *with,
		       uint64_t now_ns);
/* Writes what is left of all waits. */
void native_waits_end(struct native_waits *waits, const struct native_waits_with *with,
		      uint64_t now_ns);
void native_waits_fini(struct native_waits *waits);

/* The time until the next look: unchanged looks in a row, CPU time of one, time since the first. */
uint64_t native_waits_period(unsigned unchanged, uint64_t cost_ns, uint64_t age_ns);

#endif
