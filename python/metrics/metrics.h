/*
 * kymo._metrics: what timers and collectors of kymo.profiler keep, exact over any number of samples
 * and of bounded size.
 *
 *	clock.c    ticks and what they are in ms          instance.c  numbers of timers and collectors
 *	open.c     measurements that are open, by thread  series.c    times under one name
 *	value.c    values under one name                  batches.c   samples in order, a bounded number
 *	metrics.c  a timer or collector, and the module   queues.c    busy and idle, by thread
 *	judge.c    comparing, by views/compare/compare_stats.c    spans.c     time that is covered at least once
 *	process.c  memory of the process
 *
 * Everything but open.c's end of a thread runs with the GIL held, and that is what protects it. A
 * sample is counted here and written into the recording with the same two readings of the clock, so
 * that SQL finds the same numbers.
 */
#ifndef KYMO_METRICS_H
#define KYMO_METRICS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include <kymo/kymo.h>

#include "base/hist.h"

/* ---- clock.c ------------------------------------------------------------------------------ */

/* Turns recording on, unless KYMO in the environment says otherwise, and decides on the clock; the
   first call counts. */
void metrics_begin(void);
/* The recording's ticks, so that rows and samples agree; CLOCK_MONOTONIC in ns where nothing is
   recorded. */
uint64_t metrics_now(void);
bool metrics_ticks_are_the_recordings(void);
double metrics_ms_per_tick(void);
/* Counts the forks that led to this process: samples belong to the process that took them. */
extern uint32_t metrics_generation;

/* ---- instance.c --------------------------------------------------------------------------- */

/* A number of its own for each of the first 1,000; then the one that was given back longest ago,
   since the recording's table of names is bounded; 0: none is free. */
uint32_t instance_take(void);
void instance_give(uint32_t instance);

/* ---- batches.c ---------------------------------------------------------------------------- */

#define BATCHES_MAX 1024u

/* All samples in order as means of `size` of them each, size growing by powers of two: bounded, and
   nothing is left out but the last few that make no whole batch. */
struct batches {
	double *means; /* BATCHES_MAX; NULL until the first */
	uint32_t count;
	uint64_t size;
	double sum; /* of the batch that is being filled */
	uint64_t filled;
};

void batches_add(struct batches *batches, double value);
void batches_clear(struct batches *batches);
/* The means times scale. */
PyObject *batches_list(const struct batches *batches, double scale);

/* ---- series.c ----------------------------------------------------------------------------- */

struct series {
	PyObject_HEAD PyObject *name;
	PyObject *device; /* whose events tell the time; NULL: the host's clock */
	PyObject
		*pending; /* a list of measurements that the device has not ended yet; NULL: none */
	uint64_t owner; /* of its timer or collector */
	uint32_t instance;
	uint32_t id, device_id; /* of its names; 0 until recorded */
	uint32_t generation;
	uint32_t open; /* measurements that are open now */
	uint64_t count, sum, min, max, last, child;
	uint64_t on_device; /* of count */
	uint64_t top_count, top_sum; /* of samples that are inside no other of their owner */
	uint64_t first_start, last_end;
	unsigned __int128 square;
	struct batches batches;
	uint64_t histogram[KYMO_HIST_BUCKETS];
};

extern PyType_Spec series_spec;
extern PyTypeObject *series_type;

/* device: a callable that finds it at the first measurement, or None. */
PyObject *series_new(PyObject *name, uint64_t owner, uint32_t instance, PyObject *device);
/* Begins anew where this process is a child of the one that counted. */
void series_current(struct series *series);
void series_add(struct series *series, uint64_t start, uint64_t duration, struct series *parent);
/* Takes what the device has ended; all of it where wait. -1 and an exception: only what is no
   Exception. */
int series_settle(struct series *series, bool wait);
/* A dict of count, mean_ms, … */
PyObject *series_stats(struct series *series);

/* ---- value.c ------------------------------------------------------------------------------ */

struct bucket {
	uint64_t count;
	uint16_t key;
};

struct value {
	PyObject_HEAD PyObject *name;
	uint32_t instance, id, generation;
	uint64_t count, first_at, last_at;
	double sum, mean, square /* about the mean */, min, max, last;
	struct batches batches;
	struct bucket *buckets; /* by key */
	uint32_t bucket_count, bucket_room;
};

extern PyType_Spec value_spec;
extern PyTypeObject *value_type;

PyObject *value_new(PyObject *name, uint32_t instance);
void value_current(struct value *value);
void value_add(struct value *value, double number);
PyObject *value_stats(struct value *value);

/* ---- open.c ------------------------------------------------------------------------------- */

#define OPEN_BY_NAME ((const void *)1) /* for a frame: begun by start(), ended by stop() */

int open_init(void);
/* -1 and an exception: only what is no Exception. */
int open_begin(struct series *series, const void *frame);
/* 0; 1: it was not begun; -1 and an exception, as above. */
int open_end(struct series *series, const void *frame);
/* The series goes away. */
void open_forget(const struct series *series);

/* Who is to be told of each outermost measurement of a thread; queues.c. */
extern uint32_t queues_active;
void queues_add(uint64_t start, uint64_t end);

/* ---- spans.c ------------------------------------------------------------------------------ */

struct span {
	uint64_t start, end;
};

/* The union of spans that come in any order, kept as spans that do not touch. Of more than room of
   them the older half is settled: one that comes later and reaches back into it counts from there
   on, and that is counted. */
struct spans {
	struct span *list;
	uint32_t count, room;
	uint64_t until; /* what is before is settled; at first the beginning */
	uint64_t busy, gaps, longest_gap; /* of what is settled */
	uint64_t not_exact;
};

struct spans_sum {
	uint64_t busy, gaps, longest_gap;
};

void spans_init(struct spans *spans, struct span *list, uint32_t room, uint64_t start);
/* false: nothing of it lies after what is settled. */
bool spans_add(struct spans *spans, uint64_t start, uint64_t end);
/* From the beginning to until, with the gaps at both ends. */
struct spans_sum spans_sum(const struct spans *spans, uint64_t until);

/* ---- others ------------------------------------------------------------------------------- */

uint32_t name_id(PyObject *name, enum kymo_source source, uint32_t instance);
extern PyType_Spec queues_spec;
PyObject *judge(PyObject *module, PyObject *rows);
PyObject *warmup(PyObject *module, PyObject *values);
PyObject *resident(PyObject *module, PyObject *unused);

#endif
