/*
 * kymo._metrics: the data of timers and collectors of kymo.profiler, exact over any number of
 * samples and bounded in size.
 *
 *	clock.c    ticks, and their length in ms      instance.c  numbers of timers and collectors
 *	open.c     open measurements, by thread       series.c    times under one name
 *	value.c    values under one name              batches.c   samples in order, bounded
 *	metrics.c  a timer or collector; the module   queues.c    busy and idle time, by thread
 *	judge.c    comparisons (compare_stats.c)      spans.c     union of time spans
 *	process.c  memory of the process
 *
 * The GIL protects everything except the end of a thread in open.c. A sample is counted here and
 * written into the recording with the same two clock readings, so SQL returns the same numbers.
 */
#ifndef KYMO_METRICS_H
#define KYMO_METRICS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include <kymo/kymo.h>

#include "base/clock.h"
#include "base/hist.h"

/* ---- clock.c ------------------------------------------------------------------------------ */

/* Turns recording on, unless KYMO in the environment forbids it, and chooses the clock. Only the
   first call counts. */
void metrics_begin(void);
/* The recording's ticks, so that rows and samples agree; CLOCK_MONOTONIC in ns if nothing is
   recorded. */
uint64_t metrics_now(void);
bool metrics_ticks_are_the_recordings(void);
uint64_t metrics_rate(void); /* ns per tick, 32.32 fixed point */
double metrics_ms_per_tick(void);
/* Number of forks that led to this process: samples belong to the process that took them. */
extern uint32_t metrics_generation;

/* ---- instance.c --------------------------------------------------------------------------- */

/* A unique number for each of the first 1,000; then the one given back longest ago, because the
   recording's table of names is bounded; 0: none is free. */
uint32_t instance_take(void);
void instance_give(uint32_t instance);

/* ---- batches.c ---------------------------------------------------------------------------- */

#define BATCHES_MAX 1024u

/* All samples in order, as means of `size` samples each. size grows by powers of two, so memory is
   bounded; only the last few samples that do not fill a batch are left out. */
struct batches {
	double *means; /* BATCHES_MAX; NULL until the first */
	uint32_t count;
	uint64_t size;
	double sum; /* of the batch being filled */
	uint64_t filled;
};

void batches_add(struct batches *batches, double value);
void batches_clear(struct batches *batches);
/* The means times `scale`. */
PyObject *batches_list(const struct batches *batches, double scale);

/* ---- series.c ----------------------------------------------------------------------------- */

struct series {
	PyObject_HEAD PyObject *name;
	PyObject *device; /* whose events are timed; NULL: the host's clock */
	PyObject *pending; /* list of measurements that the device has not finished; NULL: none */
	uint64_t owner; /* of its timer or collector */
	uint32_t instance;
	uint32_t id, device_id; /* ids of its names; 0 until recorded */
	uint32_t generation;
	uint32_t open; /* open measurements */
	uint64_t count, sum, min, max, last, child;
	uint64_t on_device; /* of `count` */
	uint64_t top_count, top_sum; /* of samples that are not inside another of their owner */
	uint64_t first_start, last_end;
	unsigned __int128 square;
	struct batches batches;
	uint64_t histogram[KYMO_HIST_BUCKETS];
};

extern PyType_Spec series_spec;
extern PyTypeObject *series_type;

/* device: a callable that finds the device at the first measurement, or None. */
PyObject *series_new(PyObject *name, uint64_t owner, uint32_t instance, PyObject *device);
/* Starts over if this process is a forked child of the one that counted. */
void series_current(struct series *series);
void series_add(struct series *series, uint64_t start, uint64_t duration, struct series *parent);
/* Takes the measurements that the device has finished; with `wait`, all. -1 and an exception: only
   those that are not an Exception (BaseException). */
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

#define OPEN_BY_NAME ((const void *)1) /* instead of a frame: begun by start(), ended by stop() */

int open_init(void);
/* -1 and an exception: only those that are not an Exception (BaseException). */
int open_begin(struct series *series, const void *frame);
/* 0; 1: not begun; -1 and an exception, as above. */
int open_end(struct series *series, const void *frame);
/* Call it when the series is freed. */
void open_forget(const struct series *series);

/* Number of Queues objects that count the outermost measurements of threads; queues.c. */
extern uint32_t queues_active;
void queues_add(uint64_t start, uint64_t end);

/* ---- spans.c ------------------------------------------------------------------------------ */

struct span {
	uint64_t start, end;
};

/* The union of spans that arrive in any order, kept as disjoint spans. When there are more than
   `room`, the older half is settled. A later span that reaches back into settled time is cut at its
   end, and the cut is counted. */
struct spans {
	struct span *list;
	uint32_t count, room;
	uint64_t until; /* time before this is settled; initially the start */
	uint64_t busy, gaps, longest_gap; /* of settled time */
	uint64_t not_exact;
};

struct spans_sum {
	uint64_t busy, gaps, longest_gap;
};

void spans_init(struct spans *spans, struct span *list, uint32_t room, uint64_t start);
/* false: all of it lies in settled time. */
bool spans_add(struct spans *spans, uint64_t start, uint64_t end);
/* From the start to `until`, with the gaps at both ends. */
struct spans_sum spans_sum(const struct spans *spans, uint64_t until);

/* ---- others ------------------------------------------------------------------------------- */

uint32_t name_id(PyObject *name, enum kymo_source source, uint32_t instance);
extern PyType_Spec queues_spec;
PyObject *judge(PyObject *module, PyObject *rows);
PyObject *warmup(PyObject *module, PyObject *values);
PyObject *resident(PyObject *module, PyObject *unused);

#endif
