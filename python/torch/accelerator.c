/*
 * Time on an accelerator: a pair of torch's timing events around each forward, backward and step,
 * on the current stream. Nothing waits for the events: later calls check whether they have passed,
 * and those that have not by the end are dropped and counted. Events give durations but no moments.
 * Moments follow from two bounds of every event: it passed after it was recorded, and before it was
 * seen to have passed. All functions need the GIL, except accelerator_is_ready().
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include <kymo/atomic.h>
#include <kymo/device.h>

#include "record/adapter.h"

#include "torch.h"

#define DEVICES_MOST 16
#define STREAMS_MOST 64
#define MODELS_MOST 64
#define SPANS 8192u /* in flight at once */
#define POOL_MOST 4096
#define FAILURES_MOST 8
#define DRIFT 100e-6 /* largest drift between the two clocks */

bool accelerator_is_there; /* settings (below) allow it, and it has not failed too often */
static bool ready; /* atomic */

static struct {
	PyObject *initialized, *stream, *make,
		*capturing; /* functions of torch; the last may be NULL */
	char type[16]; /* "cuda" */
	uint32_t failures;
	pid_t pid;
} from;

/* ---- failures -------------------------------------------------------------------------------- */

static void accelerator_say_failure(PyObject *error)
{
	PyObject *text = error ? PyObject_Str(error) : NULL;
	const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
	char sentence[256];

	snprintf(sentence, sizeof(sentence),
		 "device times of modules are no longer recorded: torch.%s failed: %s", from.type,
		 utf8 ? utf8 : "no message");
	kymo_mark("kymo.torch", sentence);
	Py_XDECREF(text);
	PyErr_Clear();
}

/* A torch call raised: the exception is cleared and counted; after several, torch is not called
   again. */
static void accelerator_failed(void)
{
	PyObject *kind, *error, *trace;

	PyErr_Fetch(&kind, &error, &trace);
	losses_count(LOSS_FAILED, 1);
	if (++from.failures == FAILURES_MOST) {
		accelerator_is_there = false;
		kymo__store_relaxed(&ready, false);
		accelerator_say_failure(error ? error : kind);
	}
	Py_XDECREF(kind);
	Py_XDECREF(error);
	Py_XDECREF(trace);
}

/* ---- calls into torch ---- */

/* 1, 0, or -1: it raised, which is counted. */
static int truth_of(PyObject *answer)
{
	int truth = answer ? PyObject_IsTrue(answer) : -1;

	Py_XDECREF(answer);
	if (truth < 0)
		accelerator_failed();
	return truth;
}

static bool accelerator_number_of(PyObject *object, const char *attribute, long long *out)
{
	PyObject *value = PyObject_GetAttrString(object, attribute);

	*out = value ? PyLong_AsLongLong(value) : -1;
	Py_XDECREF(value);
	return !PyErr_Occurred();
}

static bool elapsed_ns(PyObject *begin, PyObject *end, double *out)
{
	PyObject *ms = begin == end ? PyFloat_FromDouble(0)
				    : PyObject_CallMethod(begin, "elapsed_time", "O", end);

	*out = ms ? PyFloat_AsDouble(ms) * 1e6 : 0;
	Py_XDECREF(ms);
	if (PyErr_Occurred() || !isfinite(*out)) {
		accelerator_failed();
		return false;
	}
	return true;
}

/* ---- devices, streams and models, with their numbers in the recording ---- */

static int no_clock(void *context, uint32_t local, uint64_t *out_ns)
{
	(void)context, (void)local, (void)out_ns;
	return -1;
}

static const struct kymo_device_adapter adapter = { sizeof(adapter), "torch", NULL, no_clock,
						    NULL };

/* Device time is relative to its anchor, an event that is replaced by a later one from time to
   time, because torch returns times as floats. Host ticks at its zero: base + a value between low
   and high. */
static struct device {
	uint32_t id; /* in the recording */
	PyObject *pool; /* list of unused events */
	PyObject *anchor;
	double anchor_ns, low, high;
	uint64_t base, narrowed;
} devices[DEVICES_MOST];

static struct {
	long long stream;
	int32_t device;
	uint32_t queue;
	uint64_t last_end; /* ticks: of the last outermost span that was reported */
} streams[STREAMS_MOST];
static uint32_t stream_count;

static struct {
	uint32_t name, id;
} models[MODELS_MOST];
static uint32_t model_count;

static uint32_t add_queue(int32_t device, long long stream)
{
	char name[48];

	if (!devices[device].id) {
		snprintf(name, sizeof(name), "%s:%d", from.type, device);
		devices[device].id = kymo_device_add(&adapter, (uint32_t)device, name);
	}
	snprintf(name, sizeof(name), "stream %lld", stream);
	return kymo_device_queue_add(devices[device].id, name, KYMO_DEVICE_NEXT_CORE);
}

/* 0: too many. */
static uint32_t accelerator_queue_of(int32_t device, long long stream)
{
	uint32_t i = 0;

	while (i < stream_count && (streams[i].stream != stream || streams[i].device != device))
		i++;
	if (i == STREAMS_MOST)
		return 0;
	if (i == stream_count) {
		streams[i].stream = stream;
		streams[i].device = device;
		streams[i].queue = add_queue(device, stream);
		stream_count++;
	}
	return streams[i].queue;
}

/* A module that is called alone is executed as a model: its owner may be gone, and never runs. */
static uint32_t accelerator_model_of(const struct entry *entry)
{
	uint32_t i = 0, name = entry->alone ? entry->name : entry->model;
	const char *text = entry->alone ? entry->text : entry->root ? entry->root->text : NULL;

	if (!name || !text)
		return 0;
	while (i < model_count && models[i].name != name)
		i++;
	if (i == MODELS_MOST)
		return kymo_device_model_add(text);
	if (i == model_count) {
		models[i].name = name;
		models[i].id = kymo_device_model_add(text);
		model_count++;
	}
	return models[i].id;
}

/* ---- events ---- */

static PyObject *event_take(int32_t device)
{
	PyObject *pool = devices[device].pool, *event;
	Py_ssize_t count = pool ? PyList_GET_SIZE(pool) : 0;

	if (!count)
		return PyObject_CallNoArgs(from.make);
	event = Py_NewRef(PyList_GET_ITEM(pool, count - 1));
	PyList_SetSlice(pool, count - 1, count, NULL);
	return event;
}

/* An event that is used elsewhere goes into the pool when its last user returns it. */
static void event_give(PyObject *event, int32_t device)
{
	struct device *at = &devices[device];

	if (!event)
		return;
	if (!at->pool)
		at->pool = PyList_New(0);
	if (Py_REFCNT(event) == 1 && at->pool && PyList_GET_SIZE(at->pool) < POOL_MOST)
		PyList_Append(at->pool, event);
	Py_DECREF(event);
	PyErr_Clear();
}

static bool accelerator_record(struct stamp *out, PyObject *stream)
{
	PyObject *event, *done;
	long long device = -1, number = -1;

	if (!accelerator_number_of(stream, "device_index", &device) ||
	    !accelerator_number_of(stream, "stream_id", &number) || device < 0 ||
	    device >= DEVICES_MOST)
		return false;
	event = event_take((int32_t)device);
	if (!event)
		return false;
	out->device = (int32_t)device;
	out->queue = accelerator_queue_of((int32_t)device, number);
	out->ticks = kymo__ticks();
	done = PyObject_CallMethod(event, "record", "O", stream);
	if (!done) {
		Py_DECREF(event);
		return false;
	}
	Py_DECREF(done);
	out->event = event;
	return true;
}

/* During a graph capture, recorded events become part of the graph, and querying others ends the
   capture. */
static bool may_not_touch(void)
{
	int captured = from.capturing ? truth_of(PyObject_CallNoArgs(from.capturing)) : 0;

	if (captured > 0)
		losses_count(LOSS_CAPTURED, 1);
	return captured || !accelerator_is_there;
}

/* Records an event on the current stream; none if that fails. */
static void stamp(struct stamp *out)
{
	PyObject *stream;

	out->event = NULL;
	if (may_not_touch())
		return;
	stream = PyObject_CallNoArgs(from.stream);
	if (!stream || !accelerator_record(out, stream))
		accelerator_failed();
	Py_XDECREF(stream);
}

/* ---- spans in flight ---- */

struct timing {
	struct stamp begin, end;
	struct kymo_device_launch launch;
	uint32_t name, model, depth;
	enum kymo_device_kind kind;
	double start_ns, end_ns; /* device time, once known */
	bool known;
};

/* In the order in which they ended: reported, then known, then in flight. */
static struct timing ring[SPANS];
static uint64_t told, known, head;
static bool resolving; /* torch's functions may let other threads run */
static uint64_t own_ticks, own_spans; /* cost of this file */

static void accelerator_release(struct timing *timing)
{
	struct stamp begin = timing->begin, end = timing->end;

	timing->begin.event = timing->end.event = NULL;
	event_give(begin.event, begin.device);
	event_give(end.event, end.device);
}

/* Narrows low and high: an event passes after it was recorded and before it was seen to have
   passed; the clocks drift apart. */
static void accelerator_narrow(struct device *device, const struct timing *timing, double rate,
			       uint64_t seen)
{
	double start = timing->start_ns * rate, end = timing->end_ns * rate;
	double low = fmax((double)(int64_t)(timing->begin.ticks - device->base) - start,
			  (double)(int64_t)(timing->end.ticks - device->base) - end);
	double high = (double)(int64_t)(seen - device->base) - end;
	double apart = (double)(int64_t)(seen - device->narrowed) * DRIFT;

	device->narrowed = seen;
	device->low = fmax(device->low - apart, low);
	device->high = fmin(device->high + apart, high);
	if (device->low <= device->high)
		return;
	device->low = fmin(low, high);
	device->high = fmax(low, high);
}

static void accelerator_measure(struct timing *timing, double rate, uint64_t seen)
{
	struct device *device = &devices[timing->begin.device];
	PyObject *old = device->anchor;
	double ns;

	if (!old) {
		device->anchor = Py_NewRef(timing->begin.event);
		device->base = timing->begin.ticks;
		device->narrowed = seen;
		device->low = -INFINITY;
		device->high = INFINITY;
	}
	if (!elapsed_ns(device->anchor, timing->begin.event, &ns))
		return;
	timing->start_ns = device->anchor_ns + ns;
	if (!elapsed_ns(timing->begin.event, timing->end.event, &ns))
		return;
	timing->end_ns = timing->start_ns + fmax(ns, 0);
	timing->known = true;
	accelerator_narrow(device, timing, rate, seen);
	if (old && !timing->depth) {
		device->anchor = Py_NewRef(timing->begin.event);
		device->anchor_ns = timing->start_ns;
		event_give(old, timing->begin.device);
	}
}

static uint64_t ticks_at(const struct device *device, double zero, double ns, double rate)
{
	return device->base + (uint64_t)(int64_t)(zero + ns * rate);
}

/* The middle of the possible range; adjusted so that successive outermost spans do not overlap as
   the bounds move. */
static double zero_for(const struct timing *outermost, double rate)
{
	const struct device *device = &devices[outermost->begin.device];
	double zero = (device->low + device->high) / 2, late;
	uint32_t i = 0;

	while (i < stream_count && streams[i].queue != outermost->begin.queue)
		i++;
	if (i == stream_count)
		return zero;
	late = (double)(int64_t)(streams[i].last_end -
				 ticks_at(device, zero, outermost->start_ns, rate));
	if (streams[i].last_end && late > 0)
		zero = fmin(zero + late, device->high);
	streams[i].last_end = ticks_at(device, zero, outermost->end_ns, rate);
	return zero;
}

static void accelerator_tell(const struct timing *timing, double zero, double rate)
{
	const struct device *device = &devices[timing->begin.device];
	struct kymo_device_op op = {
		.bytes = sizeof(op),
		.queue = timing->begin.queue,
		.model = timing->model,
		.kind = timing->kind,
		.name = timing->name,
		.queued = KYMO_DEVICE_NO_TIME,
		.submit = KYMO_DEVICE_NO_TIME,
		.start = ticks_at(device, zero, timing->start_ns, rate),
		.end = ticks_at(device, zero, timing->end_ns, rate),
		.launch = timing->launch,
		.flags = KYMO_DEVICE_HOST_TICKS | KYMO_DEVICE_DEPTH(timing->depth),
		.error_ns = (uint64_t)(fmax(device->high - zero, zero - device->low) / rate) + 1,
	};

	kymo_device_op(&op);
}

/* The spans of an outermost call (the last one) are reported together, with one relation of the
   clocks, so they stay nested. Spans of other devices among them have their own clock. */
static void tell_known(double rate)
{
	const struct timing *last = &ring[(known - 1) % SPANS];
	double zero = told < known && last->known ? zero_for(last, rate) : 0;

	while (told < known) {
		struct timing *timing = &ring[told++ % SPANS];
		bool same = last->known && timing->begin.device == last->begin.device;
		const struct device *device = &devices[timing->begin.device];

		if (timing->known)
			accelerator_tell(timing, same ? zero : (device->low + device->high) / 2,
					 rate);
		own_spans++;
	}
	kymo__source_cost(KYMO_SOURCE_DEVICE, own_ticks / (own_spans ? own_spans : 1));
}

static bool moved(const struct timing *timing)
{
	return timing->begin.device != timing->end.device;
}

static void accelerator_resolve(void)
{
	double rate = (double)(1u << 30) / (double)(kymo_ticks_ns(1u << 30) + 1);

	if (resolving)
		return;
	resolving = true;
	while (known < head && accelerator_is_there) {
		struct timing *timing = &ring[known % SPANS];
		int passed = truth_of(PyObject_CallMethod(timing->end.event, "query", NULL));

		if (!passed)
			break;
		if (moved(timing))
			losses_count(LOSS_MOVED, 1);
		else if (passed > 0)
			accelerator_measure(timing, rate, kymo__ticks());
		known++;
		accelerator_release(timing);
		if (!timing->depth)
			tell_known(rate);
	}
	resolving = false;
}

static void accelerator_push(struct span *span, struct stamp *end, const struct span_of *of)
{
	struct timing *timing = &ring[head % SPANS];
	struct stamp begin = span->begin;

	span->begin.event = NULL;
	if (head - told == SPANS) {
		losses_count(LOSS_FULL, 1);
		event_give(begin.event, begin.device);
		event_give(end->event, end->device);
		return;
	}
	*timing = (struct timing){ .begin = begin,
				   .end = *end,
				   .launch = span->launch,
				   .name = of->entry->name,
				   .model = accelerator_model_of(of->entry),
				   .depth = of->depth < 255 ? of->depth : 255,
				   .kind = of->root ? KYMO_DEVICE_EXECUTION : KYMO_DEVICE_MODULE };
	head++;
}

/* ---- for other files ---- */

bool accelerator_is_ready(void)
{
	return kymo__load_relaxed(&ready) && !steps_aside;
}

/* Saves the program's exception, and counts the time taken. */
struct held {
	PyObject *kind, *value, *trace;
	uint64_t begun;
};

static struct held accelerator_hold(void)
{
	struct held held = { .begun = kymo__ticks() };

	PyErr_Fetch(&held.kind, &held.value, &held.trace);
	return held;
}

static void accelerator_let_go(struct held *held)
{
	PyErr_Restore(held->kind, held->value, held->trace);
	own_ticks += kymo__ticks() - held->begun;
}

void accelerator_look(void)
{
	struct held held;
	bool is;

	if (!accelerator_is_there || steps_aside)
		return;
	if (!kymo_device_enabled()) {
		kymo__store_relaxed(&ready, false);
		return;
	}
	held = accelerator_hold();
	is = from.pid == getpid() && truth_of(PyObject_CallNoArgs(from.initialized)) > 0 &&
	     accelerator_is_there;
	kymo__store_relaxed(&ready, is);
	if (is && known < head && !may_not_touch())
		accelerator_resolve();
	accelerator_let_go(&held);
}

void accelerator_begin(struct span *span, uint64_t start)
{
	struct held held = accelerator_hold();

	stamp(&span->begin);
	kymo_device_launch(&span->launch);
	span->launch.ticks = start; /* identifies its row in python.torch_trace */
	accelerator_let_go(&held);
}

void accelerator_end(struct span *span, const struct span_of *of)
{
	struct held held = accelerator_hold();
	struct stamp end = { 0 };

	stamp(&end);
	if (end.event)
		accelerator_push(span, &end, of);
	else
		accelerator_drop(span);
	if (end.event && accelerator_is_ready())
		accelerator_resolve();
	accelerator_let_go(&held);
}

void accelerator_end_at(struct span *span, const struct stamp *end, const struct span_of *of)
{
	struct held held = accelerator_hold();
	struct stamp shared = *end;

	Py_XINCREF(shared.event);
	if (shared.event)
		accelerator_push(span, &shared, of);
	else
		accelerator_drop(span);
	accelerator_let_go(&held);
}

void accelerator_drop(struct span *span)
{
	PyObject *event = span->begin.event;

	span->begin.event = NULL;
	event_give(event, span->begin.device);
}

void accelerator_stamp(struct stamp *last)
{
	struct held held = accelerator_hold();
	struct stamp old = *last;

	stamp(last);
	event_give(old.event, old.device);
	accelerator_let_go(&held);
}

void accelerator_set(const char *type, PyObject *initialized, PyObject *stream, PyObject *make,
		     PyObject *capturing)
{
	accelerator_unset();
	snprintf(from.type, sizeof(from.type), "%s", type);
	from.initialized = Py_NewRef(initialized);
	from.stream = Py_NewRef(stream);
	from.make = Py_NewRef(make);
	from.capturing = capturing == Py_None ? NULL : Py_NewRef(capturing);
	from.failures = 0;
	from.pid = getpid();
	accelerator_is_there = true;
}

/* Reports the spans that have passed; does not wait for the rest. In the child of a fork they
   belong to the parent. */
void accelerator_unset(void)
{
	struct held held = accelerator_hold();
	bool ours = from.pid == getpid();

	if (ours && accelerator_is_ready() && known < head && !may_not_touch())
		accelerator_resolve();
	accelerator_is_there = false;
	kymo__store_relaxed(&ready, false);
	if (ours && !resolving) {
		tell_known((double)(1u << 30) / (double)(kymo_ticks_ns(1u << 30) + 1));
		losses_count(LOSS_AT_END, head - known);
		while (known < head)
			accelerator_release(&ring[known++ % SPANS]);
		told = known;
		losses_say();
		for (int i = 0; i < DEVICES_MOST; i++) {
			Py_CLEAR(devices[i].anchor);
			Py_CLEAR(devices[i].pool);
			devices[i].anchor_ns = 0;
		}
	}
	Py_CLEAR(from.initialized);
	Py_CLEAR(from.stream);
	Py_CLEAR(from.make);
	Py_CLEAR(from.capturing);
	accelerator_let_go(&held);
}
