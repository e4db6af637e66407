/*
 * How busy threads are while somebody looks: the outermost measurements of each, as they end. Busy time of a thread is the sum
 * of them, and that of all together their union, kept as intervals that do not touch. Of more than 16,384 such intervals
 * the older half is settled: a later measurement that reaches back into it is counted from there on, and that is told.
 */
#include "metrics.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_MAX 1024u
#define SPANS_MAX 16384u

uint32_t queues_active;

struct span {
	uint64_t start, end;
};

struct queue {
	long tid;
	PyObject *name; /* NULL: none is known */
	uint64_t busy, last_end, count, gaps, longest_gap;
};

struct queues {
	PyObject_HEAD PyObject *namer; /* called by a thread that is new; gives its name */
	struct queue *threads;
	struct span *spans;
	uint32_t thread_count, span_count;
	uint64_t started, stopped, settled_busy, settled_until;
	uint64_t not_exact, not_seen;
	bool on;
	struct queues *next;
};

static struct queues *looking;

static struct queue *queue_of(struct queues *queues, long tid)
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

static void settle_half(struct queues *queues)
{
	uint32_t half = queues->span_count / 2;

	for (uint32_t i = 0; i < half; i++)
		queues->settled_busy += queues->spans[i].end - queues->spans[i].start;
	queues->settled_until = queues->spans[half - 1].end;
	memmove(queues->spans, queues->spans + half,
		(queues->span_count - half) * sizeof(queues->spans[0]));
	queues->span_count -= half;
}

/* By index: what is called may let other threads run, and they may come here. */
static void name_newest(struct queues *queues, uint32_t at)
{
	PyObject *name = queues->namer ? PyObject_CallNoArgs(queues->namer) : NULL;

	if (!name)
		PyErr_Clear();
	Py_XSETREF(queues->threads[at].name, name);
}

/* Spans come in the order of their ends, or nearly. */
static void add_span(struct queues *queues, struct span span)
{
	uint32_t at;

	if (span.start < queues->settled_until) {
		queues->not_exact++;
		span.start = queues->settled_until;
	}
	if (span.start >= span.end)
		return;
	while (queues->span_count && queues->spans[queues->span_count - 1].end >= span.start &&
	       queues->spans[queues->span_count - 1].start <= span.end) {
		const struct span *last = &queues->spans[--queues->span_count];

		span.start = last->start < span.start ? last->start : span.start;
		span.end = last->end > span.end ? last->end : span.end;
	}
	if (queues->span_count == SPANS_MAX)
		settle_half(queues);
	for (at = queues->span_count; at && queues->spans[at - 1].start > span.end; at--)
		queues->spans[at] = queues->spans[at - 1];
	queues->spans[at] = span;
	queues->span_count++;
}

static void add(struct queues *queues, uint64_t start, uint64_t end)
{
	uint32_t before = queues->thread_count;
	struct queue *queue = queue_of(queues, syscall(SYS_gettid));

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
	add_span(queues, (struct span){ start, end });
	if (KYMO__UNLIKELY(queues->thread_count > before))
		name_newest(queues, before);
}

void queues_add(uint64_t start, uint64_t end)
{
	for (struct queues *queues = looking; queues; queues = queues->next)
		add(queues, start, end);
}

/* ---- the object ---------------------------------------------------------------------------- */

static void forget(struct queues *queues)
{
	for (uint32_t i = 0; i < queues->thread_count; i++)
		Py_CLEAR(queues->threads[i].name);
	queues->thread_count = queues->span_count = 0;
}

static PyObject *start(PyObject *self, PyObject *namer)
{
	struct queues *queues = (struct queues *)self;

	metrics_begin();
	if (queues->on)
		Py_RETURN_NONE;
	if (!queues->threads)
		queues->threads = calloc(THREADS_MAX, sizeof(queues->threads[0]));
	if (!queues->spans)
		queues->spans = calloc(SPANS_MAX + 1, sizeof(queues->spans[0]));
	if (!queues->threads || !queues->spans)
		return PyErr_NoMemory();
	forget(queues);
	Py_INCREF(namer);
	Py_XSETREF(queues->namer, namer);
	queues->settled_busy = queues->settled_until = queues->not_exact = queues->not_seen = 0;
	queues->stopped = 0;
	queues->started = metrics_now();
	queues->on = true;
	queues->next = looking;
	looking = queues;
	queues_active++;
	Py_RETURN_NONE;
}

static void end(struct queues *queues)
{
	struct queues **link = &looking;

	if (!queues->on)
		return;
	while (*link != queues)
		link = &(*link)->next;
	*link = queues->next;
	queues->on = false;
	queues->stopped = metrics_now();
	queues_active--;
}

static PyObject *stop(PyObject *self, PyObject *unused)
{
	(void)unused;
	end((struct queues *)self);
	Py_RETURN_NONE;
}

static uint64_t union_of(const struct queues *queues)
{
	uint64_t busy = queues->settled_busy;

	for (uint32_t i = 0; i < queues->span_count; i++)
		busy += queues->spans[i].end - queues->spans[i].start;
	return busy;
}

/* With the gap at the end, in which it does nothing. */
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

static PyObject *totals(PyObject *self, PyObject *unused)
{
	const struct queues *queues = (struct queues *)self;
	uint64_t until = queues->on ? metrics_now() : queues->stopped;
	double scale = metrics_ms_per_tick();
	PyObject *list = PyList_New(0), *row;

	(void)unused;
	for (uint32_t i = 0; list && i < queues->thread_count; i++) {
		row = row_of(&queues->threads[i], until, scale);
		if (!row || PyList_Append(list, row))
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
	if (!list)
		return NULL;
	return Py_BuildValue("{sd sd sN sK sK}", "wall_ms",
			     (double)(until - queues->started) * scale, "union_ms",
			     (double)union_of(queues) * scale, "queues", list, "not_exact",
			     (unsigned long long)queues->not_exact, "not_seen",
			     (unsigned long long)queues->not_seen);
}

static void dealloc(PyObject *self)
{
	struct queues *queues = (struct queues *)self;
	PyTypeObject *type = Py_TYPE(self);

	end(queues);
	forget(queues);
	Py_CLEAR(queues->namer);
	free(queues->threads);
	free(queues->spans);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyMethodDef methods[] = {
	{ "start", start, METH_O,
	  "Looks from now on, anew; a thread calls what is given for its name." },
	{ "stop", stop, METH_NOARGS, "Looks no more." },
	{ "totals", totals, METH_NOARGS, "What was seen, as a dict." },
	{ NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "Queues()\n--\n\nBusy and idle time of threads." },
	{ Py_tp_new, PyType_GenericNew },
	{ Py_tp_dealloc, dealloc },
	{ Py_tp_methods, methods },
	{ 0, NULL },
};

PyType_Spec queues_spec = {
	.name = "kymo._metrics.Queues",
	.basicsize = sizeof(struct queues),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
