/*
 * Open measurements, on a stack of the thread that began them. One Series object serves all its
 * uses at once, so a use is identified by its series and the frame that entered it (like regions;
 * python/core/held.h explains why). A measurement that ends below others makes those loose: they
 * are no longer nested, and their rows are marked.
 *
 * A mutex protects the list of stacks, because threads end without the GIL. The child of a fork
 * drops what its parent has open; the parent ends it.
 */
#include "metrics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16u
#define MOST 65536u /* deeper ones are not measured */

struct open {
	struct kymo_zone zone;
	struct series *series; /* borrowed; NULL: ended by another thread, or the series is freed */
	const void *frame; /* only compared */
	PyObject *event; /* of a device; NULL: the host's clock */
	uint64_t start;
	bool inherited;
};

struct stack {
	struct open *items;
	uint32_t count, room;
	uint32_t unheld;
	struct stack *next;
};

static __thread struct stack *mine;
static struct stack *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;

/* Not the lane of any thread: its zones count as ending on another thread. */
static struct kymo__lane loose;

/* ---- stacks and threads ------------------------------------------------------------------- */

static void open_thread_ends(void *pointer)
{
	struct stack *stack = pointer, **link = &all;

	pthread_mutex_lock(&lock);
	while (*link && *link != stack)
		link = &(*link)->next;
	if (*link)
		*link = stack->next;
	pthread_mutex_unlock(&lock);
	mine = NULL;
	free(stack->items);
	free(stack);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void open_in_child(void)
{
	metrics_generation++;
	all = mine;
	if (mine) {
		mine->next = NULL;
		for (uint32_t i = 0; i < mine->count; i++) {
			mine->items[i].inherited = true;
			mine->items[i].zone.lane = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
}

int open_init(void)
{
	static bool done;

	if (done)
		return 0;
	if (pthread_key_create(&key, open_thread_ends) ||
	    pthread_atfork(before_fork, after_fork, open_in_child))
		return -1;
	done = true;
	return 0;
}

static struct stack *make_stack(void)
{
	struct stack *stack = calloc(1, sizeof(*stack));

	if (!stack)
		return NULL;
	stack->items = calloc(FIRST_ROOM, sizeof(*stack->items));
	if (!stack->items || pthread_setspecific(key, stack)) {
		free(stack->items);
		free(stack);
		return NULL;
	}
	stack->room = FIRST_ROOM;
	pthread_mutex_lock(&lock);
	stack->next = all;
	all = stack;
	pthread_mutex_unlock(&lock);
	mine = stack;
	return stack;
}

static int open_grow(struct stack *stack)
{
	struct open *items = NULL;

	if (stack->room < MOST)
		items = realloc(stack->items, 2u * stack->room * sizeof(*items));
	if (!items)
		return -1;
	stack->items = items;
	stack->room *= 2;
	return 0;
}

/* Drops what other threads have ended; they left the depth to be restored here. */
static void drop_ended(struct stack *stack)
{
	while (stack->count && !stack->items[stack->count - 1].series) {
		const struct kymo_zone *zone = &stack->items[--stack->count].zone;

		if (zone->lane && zone->lane == kymo__lane)
			kymo__zone_leave(zone->lane, zone->depth);
	}
}

/* ---- beginning ---------------------------------------------------------------------------- */

/* A device failure does not reach the program: the host times that sample. -1: an exception that
   must propagate, as Ctrl-C. */
static int forgive(void)
{
	if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
		return -1;
	PyErr_Clear();
	return 0;
}

/* Devices are torch's: before it is imported there are none. */
static bool torch_is_imported(void)
{
	static PyObject *word;

	if (!word)
		word = PyUnicode_InternFromString("torch");
	return word && PyDict_GetItem(PyImport_GetModuleDict(), word);
}

static int begin_event(struct series *series, PyObject **out)
{
	*out = NULL;
	if (KYMO__LIKELY(!series->device) || !torch_is_imported())
		return 0;
	*out = PyObject_CallMethod(series->device, "begin", NULL);
	if (!*out)
		return forgive();
	/* NotImplemented: no device, now or later. None: not in use yet. */
	if (*out == Py_NotImplemented)
		Py_CLEAR(series->device);
	if (*out == Py_None || *out == Py_NotImplemented)
		Py_CLEAR(*out);
	return 0;
}

static uint32_t id_of(struct series *series)
{
	if (KYMO__UNLIKELY(!series->id))
		series->id = name_id(series->name, KYMO_SOURCE_PYTHON, series->instance);
	return series->id;
}

int open_begin(struct series *series, const void *frame)
{
	struct stack *stack = mine ? mine : make_stack();
	struct kymo_zone none = { NULL, 0, 0, 0 };
	PyObject *event;
	struct open *item;

	if (begin_event(series, &event))
		return -1;
	if (stack)
		drop_ended(stack);
	if (!stack || (stack->count == stack->room && open_grow(stack))) {
		if (stack)
			stack->unheld++;
		Py_XDECREF(event);
		return 0;
	}
	item = &stack->items[stack->count++];
	series->open++;
	item->series = series;
	item->frame = frame;
	item->event = event;
	item->inherited = false;
	item->zone = kymo_enabled() ? kymo_zone_begin_id(id_of(series)) : none;
	item->start = KYMO__LIKELY(item->zone.lane && metrics_ticks_are_the_recordings())
			      ? item->zone.start_ticks
			      : metrics_now();
	return 0;
}

/* ---- ending ------------------------------------------------------------------------------- */

/* kymo__zone_close() with the same clock reading as the sample. */
static void write_zone(const struct kymo_zone *zone, uint64_t end)
{
	struct kymo__lane *lane = kymo__lane;

	if (!zone->lane)
		return;
	if (!metrics_ticks_are_the_recordings())
		end = kymo__ticks();
	if (KYMO__LIKELY(lane == zone->lane)) {
		kymo__zone_leave(lane, zone->depth);
		kymo__zone_write(lane, zone, end, zone->depth, 0);
		return;
	}
	lane = lane ? lane : kymo__lane_get();
	if (lane)
		kymo__zone_write(lane, zone, end, 0, KYMO_ZONE_FOREIGN);
}

/* The innermost measurement of the same timer or collector among the first `count`. */
static struct series *parent_of(const struct stack *stack, uint32_t count, uint64_t owner)
{
	while (count--) {
		const struct open *item = &stack->items[count];

		if (item->series && !item->inherited && item->series->owner == owner)
			return item->series;
	}
	return NULL;
}

static int end_event(struct series *series, struct open *item, struct series *parent)
{
	PyObject *event = PyObject_CallMethod(series->device, "end", NULL), *entry = NULL;
	int rc = -1;

	if (event && !series->pending)
		series->pending = PyList_New(0);
	if (event && series->pending)
		entry = Py_BuildValue("OOKO", item->event, event, (unsigned long long)item->start,
				      parent ? (PyObject *)parent : Py_None);
	if (entry)
		rc = PyList_Append(series->pending, entry);
	Py_XDECREF(entry);
	Py_XDECREF(event);
	return rc;
}

/* The item is already off the stack: code called here may begin others. */
static int open_finish(struct stack *stack, struct open *item, uint32_t below, uint64_t end)
{
	struct series *series = item->series, *parent;
	int rc = 0;

	series->open--;
	if (KYMO__UNLIKELY(item->inherited)) {
		Py_CLEAR(item->event);
		return 0;
	}
	write_zone(&item->zone, end);
	parent = stack ? parent_of(stack, below, series->owner) : NULL;
	if (KYMO__UNLIKELY(queues_active) && stack && !below)
		queues_add(item->start, end);
	if (KYMO__LIKELY(!item->event)) {
		series_add(series, item->start, end - item->start, parent);
		return 0;
	}
	if (end_event(series, item, parent)) {
		rc = forgive();
		series_add(series, item->start, end - item->start, parent);
	} else if (PyList_GET_SIZE(series->pending) >= 16) {
		rc = series_settle(series, PyList_GET_SIZE(series->pending) >= 4096);
	}
	Py_CLEAR(item->event);
	return rc;
}

/* The newest with that series and frame, else the newest with that series (and the same kind of
   start); -1: none. */
static int64_t open_find(const struct stack *stack, const struct series *series, const void *frame)
{
	int64_t found = -1;

	for (int64_t i = (int64_t)stack->count - 1; i >= 0; i--) {
		const struct open *item = &stack->items[i];

		if (item->series != series ||
		    (frame == OPEN_BY_NAME) != (item->frame == OPEN_BY_NAME))
			continue;
		if (item->frame == frame)
			return i;
		if (found < 0)
			found = i;
	}
	return found;
}

static int end_at(struct stack *stack, uint32_t at, uint64_t end)
{
	struct open item = stack->items[at], *above = &stack->items[at + 1];
	uint32_t above_count = stack->count - at - 1;

	if (item.zone.lane && item.zone.lane != &loose)
		for (uint32_t i = 0; i < above_count; i++)
			if (above[i].zone.lane)
				above[i].zone.lane = &loose;
	memmove(above - 1, above, above_count * sizeof(*above));
	stack->count--;
	return open_finish(stack, &item, at, end);
}

/* Begun on another thread: it ends here, and that thread restores its depth later. */
static int end_elsewhere(struct series *series, const void *frame, uint64_t end)
{
	struct open item = { .series = NULL };

	pthread_mutex_lock(&lock);
	for (struct stack *stack = all; stack && !item.series; stack = stack->next) {
		int64_t at = open_find(stack, series, frame);

		if (at >= 0) {
			item = stack->items[at];
			stack->items[at].series = NULL;
			stack->items[at].event = NULL;
		}
	}
	pthread_mutex_unlock(&lock);
	return item.series ? open_finish(NULL, &item, 0, end) : 1;
}

int open_end(struct series *series, const void *frame)
{
	uint64_t end = metrics_now();
	struct stack *stack = mine;
	int64_t at;

	if (KYMO__LIKELY(stack && stack->count && !stack->unheld)) {
		struct open *top = &stack->items[stack->count - 1];

		if (KYMO__LIKELY(top->series == series && top->frame == frame)) {
			struct open item = *top;

			stack->count--;
			return open_finish(stack, &item, stack->count, end);
		}
	}
	if (stack && stack->unheld) {
		stack->unheld--;
		return 0;
	}
	if (stack)
		drop_ended(stack);
	at = stack ? open_find(stack, series, frame) : -1;
	return at >= 0 ? end_at(stack, (uint32_t)at, end) : end_elsewhere(series, frame, end);
}

/* Takes one open measurement off the series; the caller owns its event. */
static bool take_one(const struct series *series, PyObject **out_event)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (struct stack *stack = all; stack && !found; stack = stack->next)
		for (uint32_t i = 0; i < stack->count && !found; i++)
			if (stack->items[i].series == series) {
				found = true;
				*out_event = stack->items[i].event;
				stack->items[i].series = NULL;
				stack->items[i].event = NULL;
			}
	pthread_mutex_unlock(&lock);
	return found;
}

void open_forget(const struct series *series)
{
	PyObject *event;

	while (take_one(series, &event))
		Py_XDECREF(event);
}
