/*
 * Busy time of threads and device queues while a Queues object is active. Threads: their outermost
 * measurements, as they end. Queues: their operations, as they are reported, in any order. The
 * total busy time is the union.
 *
 * Threads are counted with the GIL held. Operations of devices come from any thread, without it: a
 * lock protects what they touch (the list of active objects, the spans, the devices), and no Python
 * code runs under it.
 */
#include "metrics.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kymo/atomic.h>
#include <kymo/device.h>

#define THREADS_MAX 1024u
#define SPANS_MAX 16384u
#define DEVICE_QUEUES_MAX 256u
#define DEVICE_SPANS_MAX 1024u

uint32_t queues_active;

struct queue {
	long tid;
	PyObject *name; /* NULL: unknown */
	uint64_t busy, last_end, count, gaps, longest_gap;
};

struct device_queue {
	uint32_t queue; /* queue number in the recording */
	uint64_t count;
	struct spans spans;
};

struct queues {
	PyObject_HEAD PyObject *namer; /* called by a new thread; returns its name */
	struct queue *threads;
	struct device_queue *devices;
	struct span *lists; /* for the total, the devices' total, and each queue */
	struct spans all, on_devices;
	uint32_t thread_count, device_count;
	uint64_t started, stopped;
	uint64_t not_seen;
	bool on;
	struct queues *next;
};

static struct queues *looking;

/* ---- the lock -------------------------------------------------------------------------------- */

#define TRIES_ENOUGH 1000u

/* Generation of the holder + 1: a lock that was held by a thread of the parent is free in the child
   of a fork. */
static uint32_t held_by;

static bool take_lock(uint32_t tries)
{
	uint32_t mine = metrics_generation + 1, seen;

	while (tries--) {
		seen = kymo__load_relaxed(&held_by);
		if (seen != mine && kymo__cas_acquire(&held_by, &seen, mine))
			return true;
		sched_yield();
	}
	return false;
}

/* It is held for microseconds at most. */
static void queues_lock(void)
{
	while (!take_lock(TRIES_ENOUGH))
		;
}

static void unlock(void)
{
	kymo__store_release(&held_by, 0);
}

/* ---- queues of devices ----------------------------------------------------------------------- */

static struct device_queue *device_queue_of(struct queues *queues, uint32_t number)
{
	struct device_queue *queue;

	for (uint32_t i = 0; i < queues->device_count; i++)
		if (queues->devices[i].queue == number)
			return &queues->devices[i];
	if (queues->device_count == DEVICE_QUEUES_MAX)
		return NULL;
	queue = &queues->devices[queues->device_count];
	*queue = (struct device_queue){ .queue = number };
	spans_init(&queue->spans,
		   queues->lists + 2 * SPANS_MAX + queues->device_count * DEVICE_SPANS_MAX,
		   DEVICE_SPANS_MAX, queues->started);
	queues->device_count++;
	return queue;
}

static void queues_add_operation(struct queues *queues, uint32_t number, uint64_t start,
				 uint64_t end)
{
	struct device_queue *queue;

	start = start < queues->started ? queues->started : start;
	if (end < start || end <= queues->started)
		return;
	queue = device_queue_of(queues, number);
	if (!queue) {
		queues->not_seen++;
		return;
	}
	queue->count++;
	spans_add(&queue->spans, start, end);
	spans_add(&queues->on_devices, start, end);
	spans_add(&queues->all, start, end);
}

/* As device.queues: markers and barriers are not work, waits belong to the host, and an execution
   consists of its operations. */
static bool is_work(enum kymo_device_kind kind)
{
	return kind < KYMO_DEVICE_EXECUTION && kind != KYMO_DEVICE_MARKER &&
	       kind != KYMO_DEVICE_BARRIER;
}

static void on_operation(uint32_t queue, enum kymo_device_kind kind, uint64_t start, uint64_t end)
{
	static uint32_t missed; /* atomic; reported at the next opportunity */

	if (!is_work(kind) || !metrics_ticks_are_the_recordings())
		return;
	if (!take_lock(TRIES_ENOUGH)) {
		kymo__fetch_add_relaxed(&missed, 1);
		return;
	}
	for (struct queues *queues = looking; queues; queues = queues->next) {
		queues->not_seen += kymo__exchange_relaxed(&missed, 0);
		queues_add_operation(queues, queue, start, end);
	}
	unlock();
}

/* ---- threads ------------------------------------------------------------------------------- */

static struct queue *queues_queue_of(struct queues *queues, long tid)
{
	struct queue *queue;

	for (uint32_t i = 0; i < queues->thread_count; i++)
		if (queues->threads[i].tid == tid)
			return &queues->threads[i];
	if (queues->thread_count == THREADS_MAX)
		return NULL;
	queue = &queues->threads[queues->thread_count++];
	*queue = (struct queue){ .tid = tid, .last_end = queues->started };
	return queue;
}

/* By index: the call may let other threads run, which may add entries. */
static void name_newest(struct queues *queues, uint32_t at)
{
	PyObject *name = queues->namer ? PyObject_CallNoArgs(queues->namer) : NULL;

	if (!name)
		PyErr_Clear();
	Py_XSETREF(queues->threads[at].name, name);
}

static void metrics_queues_add(struct queues *queues, uint64_t start, uint64_t end)
{
	uint32_t before = queues->thread_count;
	struct queue *queue = queues_queue_of(queues, syscall(SYS_gettid));

	if (!queue) {
		queues->not_seen++;
		return;
	}
	start = start < queue->last_end ? queue->last_end : start;
	if (end <= start)
		return;
	if (start > queue->last_end) {
		uint64_t gap = start - queue->last_end;

		queue->gaps++;
		queue->longest_gap = gap > queue->longest_gap ? gap : queue->longest_gap;
	}
	queue->busy += end - start;
	queue->last_end = end;
	queue->count++;
	queues_lock();
	spans_add(&queues->all, start, end);
	unlock();
	if (KYMO__UNLIKELY(queues->thread_count > before))
		name_newest(queues, before);
}

void queues_add(uint64_t start, uint64_t end)
{
	for (struct queues *queues = looking; queues; queues = queues->next)
		metrics_queues_add(queues, start, end);
}

/* ---- the object ---------------------------------------------------------------------------- */

static void queues_forget(struct queues *queues)
{
	for (uint32_t i = 0; i < queues->thread_count; i++)
		Py_CLEAR(queues->threads[i].name);
	queues->thread_count = queues->device_count = 0;
}

/* Untouched pages cost nothing. */
static bool queues_make_room(struct queues *queues)
{
	size_t spans = 2 * SPANS_MAX + (size_t)DEVICE_QUEUES_MAX * DEVICE_SPANS_MAX;

	if (!queues->threads)
		queues->threads = calloc(THREADS_MAX, sizeof(queues->threads[0]));
	if (!queues->devices)
		queues->devices = calloc(DEVICE_QUEUES_MAX, sizeof(queues->devices[0]));
	if (!queues->lists)
		queues->lists = calloc(spans, sizeof(queues->lists[0]));
	return queues->threads && queues->devices && queues->lists;
}

static void queues_begin(struct queues *queues)
{
	queues->not_seen = queues->stopped = 0;
	queues->started = metrics_now();
	spans_init(&queues->all, queues->lists, SPANS_MAX, queues->started);
	spans_init(&queues->on_devices, queues->lists + SPANS_MAX, SPANS_MAX, queues->started);
	queues->on = true;
	queues_lock();
	queues->next = looking;
	looking = queues;
	unlock();
	if (!queues_active++)
		kymo_device_watch(on_operation);
}

static PyObject *queues_start(PyObject *self, PyObject *namer)
{
	struct queues *queues = (struct queues *)self;

	metrics_begin();
	if (queues->on)
		Py_RETURN_NONE;
	if (!queues_make_room(queues))
		return PyErr_NoMemory();
	queues_forget(queues);
	Py_INCREF(namer);
	Py_XSETREF(queues->namer, namer);
	queues_begin(queues);
	Py_RETURN_NONE;
}

static void queues_end(struct queues *queues)
{
	struct queues **link = &looking;

	if (!queues->on)
		return;
	queues_lock();
	while (*link != queues)
		link = &(*link)->next;
	*link = queues->next;
	unlock();
	queues->on = false;
	if (!--queues_active)
		kymo_device_watch(NULL);
}

/* Finished operations are reported first; unfinished ones are left out. */
static PyObject *queues_stop(PyObject *self, PyObject *unused)
{
	struct queues *queues = (struct queues *)self;

	(void)unused;
	if (!queues->on)
		Py_RETURN_NONE;
	queues->stopped = metrics_now();
	Py_BEGIN_ALLOW_THREADS;
	kymo_device_flush();
	Py_END_ALLOW_THREADS;
	queues_end(queues);
	Py_RETURN_NONE;
}

/* Includes the idle gap at the end. */
static PyObject *row_of(const struct queue *queue, uint64_t until, double scale)
{
	uint64_t gap = until > queue->last_end ? until - queue->last_end : 0;
	uint64_t longest = gap > queue->longest_gap ? gap : queue->longest_gap;

	return Py_BuildValue("{sl sO sd sK sK sd}", "tid", queue->tid, "name",
			     queue->name ? queue->name : Py_None, "busy_ms",
			     (double)queue->busy * scale, "count", (unsigned long long)queue->count,
			     "gaps", (unsigned long long)(queue->gaps + (gap > 0)),
			     "longest_gap_ms", (double)longest * scale);
}

static PyObject *device_row_of(const struct device_queue *queue, struct spans_sum sum, double scale)
{
	return Py_BuildValue("{sI ss ss sd sK sK sd}", "queue", queue->queue, "name",
			     kymo_device_queue_name(queue->queue), "device",
			     kymo_device_queue_device(queue->queue), "busy_ms",
			     (double)sum.busy * scale, "count", (unsigned long long)queue->count,
			     "gaps", (unsigned long long)sum.gaps, "longest_gap_ms",
			     (double)sum.longest_gap * scale);
}

static bool queues_append(PyObject *list, PyObject *row)
{
	bool done = row && !PyList_Append(list, row);

	Py_XDECREF(row);
	return done;
}

static bool queues_add_rows(PyObject *list, struct queues *queues, uint64_t until, double scale)
{
	for (uint32_t i = 0; i < queues->thread_count; i++)
		if (!queues_append(list, row_of(&queues->threads[i], until, scale)))
			return false;
	for (uint32_t i = 0; i < queues->device_count; i++) {
		struct device_queue queue;
		struct spans_sum sum;

		queues_lock();
		queue = queues->devices[i];
		sum = spans_sum(&queue.spans, until);
		unlock();
		if (!queues_append(list, device_row_of(&queue, sum, scale)))
			return false;
	}
	return true;
}

static PyObject *totals(PyObject *self, PyObject *unused)
{
	struct queues *queues = (struct queues *)self;
	uint64_t until = queues->on ? metrics_now() : queues->stopped;
	double scale =
		/* one value for all rows: the rate changes as it gets more exact */
		metrics_ms_per_tick();
	PyObject *list = PyList_New(0);
	struct spans_sum all, on_devices;

	(void)unused;
	if (!list)
		return NULL;
	if (!queues_add_rows(list, queues, until, scale)) {
		Py_DECREF(list);
		return NULL;
	}
	queues_lock();
	all = spans_sum(&queues->all, until);
	on_devices = spans_sum(&queues->on_devices, until);
	unlock();
	return Py_BuildValue("{sd sd sd sN sK sK}", "wall_ms",
			     (double)(until - queues->started) * scale, "union_ms",
			     (double)all.busy * scale, "device_union_ms",
			     (double)on_devices.busy * scale, "queues", list, "not_exact",
			     (unsigned long long)queues->all.not_exact, "not_seen",
			     (unsigned long long)queues->not_seen);
}

static void queues_dealloc(PyObject *self)
{
	struct queues *queues = (struct queues *)self;
	PyTypeObject *type = Py_TYPE(self);

	queues_end(queues);
	queues_forget(queues);
	Py_CLEAR(queues->namer);
	free(queues->threads);
	free(queues->devices);
	free(queues->lists);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyMethodDef methods[] = {
	{ "start", queues_start, METH_O,
	  "Looks from now on, anew; a thread calls what is given for its name." },
	{ "stop", queues_stop, METH_NOARGS, "Looks no more." },
	{ "totals", totals, METH_NOARGS, "What was seen, as a dict." },
	{ NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "Queues()\n--\n\nBusy and idle time of threads and device queues." },
	{ Py_tp_new, PyType_GenericNew },
	{ Py_tp_dealloc, queues_dealloc },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

PyType_Spec queues_spec = {
	.name = "kymo._metrics.Queues",
	.basicsize = sizeof(struct queues),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
