/*
 * kymo._loop: callbacks of event loops that take longer than 10 ms, as rows of python.loop_stalls.
 *
 *	run.c      the C entry of contextvars.Context.run, through which asyncio runs each callback
 *	uvloop.c   PyContext_Enter and PyContext_Exit as uvloop calls them, around each callback
 *	stall.c    what a long callback was, and its row
 *	module.c   the Python module
 *
 * Nothing that Python code sees changes, and nothing happens in a program without an event loop. A
 * callback costs two reads of the CPU's counter; libkymo is opened at the first stall. Nothing here
 * raises. The GIL protects what is shared; each thread has its own struct loop_thread.
 */
#ifndef KYMO_PYTHON_LOOP_H
#define KYMO_PYTHON_LOOP_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#endif

#include "base/schema.h"

#define LOOP_STALL_NS SCHEMA_LOOP_STALL_NS

/* As kymo_ticks() where the CPU's counter is the clock, without libkymo. */
static inline uint64_t loop_ticks(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* A callback that took too long. Its row waits for the next one, when the loop has looked for what
   became ready meanwhile. */
struct loop_thread {
	uint32_t depth; /* nested callbacks: a loop may run within a callback */
	/* The depth of the callbacks of a loop within a callback: that one did not block them. 0:
	   none. */
	uint32_t nested;
	bool pending; /* row is to be written, by process pid: a fork copies it */
	pid_t pid;
	uint64_t began_ticks; /* of uvloop's callback */
	struct schema_loop_stall_row row;
};

extern __thread struct loop_thread loop_thread;
/* Calls of at least so many ticks are given to the functions below. Less than LOOP_STALL_NS until
   the rate of the counter is known. */
extern uint64_t loop_least_ticks;

/* run.c: false: this Python has another Context.run, and nothing is recorded. */
bool loop_run_arm(void);
void loop_run_disarm(void);
/* uvloop.c: once uvloop is loaded. */
void loop_uvloop_look(void);
void loop_uvloop_disarm(void);

/* stall.c: reads the clock for the rate of the counter. */
void loop_stall_begin(void);
/* Before a callback, if another one is pending or open. */
void loop_stall_before(struct loop_thread *thread);
/* After a callback of asyncio, or of uvloop, whose callback is not known (NULL). */
void loop_stall_after(struct loop_thread *thread, uint64_t began_ticks, uint64_t taken_ticks,
		      PyObject *callback, enum schema_loop_kind kind);
/* Writes the pending row. */
void loop_stall_flush(struct loop_thread *thread);

#endif
