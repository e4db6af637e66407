#include "metrics.h"

#include <math.h>
#include <string.h>
#include <structmember.h>

#include "../core/frame.h"

PyTypeObject *series_type;

/* ---- samples ------------------------------------------------------------------------------ */

static void series_clear(struct series *series)
{
	series->count = series->sum = series->min = series->max = series->last = series->child = 0;
	series->on_device = series->top_count = series->top_sum = 0;
	series->first_start = series->last_end = 0;
	series->square = 0;
	batches_clear(&series->batches);
	memset(series->histogram, 0, sizeof(series->histogram));
	Py_CLEAR(series->pending);
}

void series_current(struct series *series)
{
	if (KYMO__LIKELY(series->generation == metrics_generation))
		return;
	series->generation = metrics_generation;
	series_clear(series);
}

void series_add(struct series *series, uint64_t start, uint64_t duration, struct series *parent)
{
	series_current(series);
	if (!series->count || duration < series->min)
		series->min = duration;
	if (duration > series->max)
		series->max = duration;
	if (!series->count || start < series->first_start)
		series->first_start = start;
	if (start + duration > series->last_end)
		series->last_end = start + duration;
	series->count++;
	series->sum += duration;
	series->square += (unsigned __int128)duration * duration;
	series->last = duration;
	series->histogram[hist_bucket(duration)]++;
	batches_add(&series->batches, (double)duration);
	if (parent) {
		series_current(parent);
		parent->child += duration;
	} else {
		series->top_count++;
		series->top_sum += duration;
	}
}

/* ---- device measurements --------------------------------------------------------------------- */

/* A row of its own beside the host's: the host only queued the work. */
static void write_device_zone(struct series *series, uint64_t start, uint64_t duration)
{
	struct kymo_zone zone = { NULL, start, 0, 0 };

	if (!kymo_enabled() || !metrics_ticks_are_the_recordings())
		return;
	if (!series->device_id)
		series->device_id = name_id(series->name, KYMO_SOURCE_DEVICE, series->instance);
	zone.name = series->device_id;
	zone.lane = kymo__lane ? kymo__lane : kymo__lane_get();
	if (zone.lane)
		kymo__zone_write(zone.lane, &zone, start + duration, 0, KYMO_ZONE_FOREIGN);
}

static void settle_one(struct series *series, PyObject *entry, double ms_per_tick)
{
	unsigned long long start;
	PyObject *parent;
	uint64_t duration;
	double ms;

	if (!PyArg_ParseTuple(entry, "dKO", &ms, &start, &parent)) {
		PyErr_Clear();
		return;
	}
	duration = ms > 0 && ms_per_tick > 0 ? (uint64_t)(ms / ms_per_tick + 0.5) : 0;
	series_add(series, start, duration,
		   Py_TYPE(parent) == series_type ? (struct series *)parent : NULL);
	series->on_device++;
	write_device_zone(series, start, duration);
}

int series_settle(struct series *series, bool wait)
{
	double ms_per_tick;
	PyObject *done;

	if (KYMO__LIKELY(!series->pending || !series->device || !PyList_GET_SIZE(series->pending)))
		return 0;
	done = PyObject_CallMethod(series->device, "settle", "Oi", series->pending, (int)wait);
	if (!done || !PyList_Check(done)) {
		Py_XDECREF(done);
		if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
			return -1;
		PyErr_Clear();
		Py_CLEAR(series->pending); /* a failed device gives no more answers */
		return 0;
	}
	ms_per_tick = metrics_ms_per_tick();
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(done); i++)
		settle_one(series, PyList_GET_ITEM(done, i), ms_per_tick);
	Py_DECREF(done);
	return 0;
}

/* ---- statistics ---------------------------------------------------------------------------- */

/* In ms, but whole ns, as in trace.regions. */
static double series_ms(uint64_t ticks, uint64_t rate)
{
	return (double)clock_span_ns(rate, ticks) * 1e-6;
}

static double series_quantile(const struct series *series, double share, uint64_t rate)
{
	int64_t ns = hist_quantile(series->histogram, share, clock_tick_ns(rate),
				   clock_span_ns(rate, series->min),
				   clock_span_ns(rate, series->max));

	return ns < 0 ? 0 : (double)ns * 1e-6;
}

/* Is not whole, and never outside of the extremes, which are. */
static double series_mean(const struct series *series, uint64_t rate)
{
	double mean = (double)series->sum / (double)series->count * clock_tick_ns(rate) * 1e-6;

	return fmin(fmax(mean, series_ms(series->min, rate)), series_ms(series->max, rate));
}

static double deviation(const struct series *series)
{
	double mean = (double)series->sum / (double)series->count;
	double spread = (double)series->square - mean * (double)series->sum;

	return series->count > 1 && spread > 0 ? sqrt(spread / (double)(series->count - 1)) : 0;
}

PyObject *series_stats(struct series *series)
{
	uint64_t rate = metrics_rate();
	uint64_t child = series->child < series->sum ? series->child : series->sum;

	return Py_BuildValue(
		"{sK sd sd sd sd sd sd sd sd sd sd sK sK sd}", "count",
		(unsigned long long)series->count, "mean",
		series->count ? series_mean(series, rate) : 0.0, "std",
		series->count ? deviation(series) * clock_tick_ns(rate) * 1e-6 : 0.0, "min",
		series_ms(series->min, rate), "max", series_ms(series->max, rate), "p50",
		series_quantile(series, 0.5, rate), "p90", series_quantile(series, 0.9, rate),
		"p99", series_quantile(series, 0.99, rate), "last", series_ms(series->last, rate),
		"total", series_ms(series->sum, rate), "self", series_ms(series->sum - child, rate),
		"on_device", (unsigned long long)series->on_device, "top_count",
		(unsigned long long)series->top_count, "top_total",
		series_ms(series->top_sum, rate));
}

/* ---- the object ---------------------------------------------------------------------------- */

PyObject *series_new(PyObject *name, uint64_t owner, uint32_t instance, PyObject *device)
{
	struct series *series = (struct series *)series_type->tp_alloc(series_type, 0);

	if (!series)
		return NULL;
	Py_INCREF(name);
	series->name = name;
	series->owner = owner;
	series->instance = instance;
	series->generation = metrics_generation;
	Py_XINCREF(device);
	series->device = device;
	return (PyObject *)series;
}

static PyObject *refuse_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	(void)type, (void)args, (void)keywords;
	PyErr_SetString(PyExc_TypeError, "create a Series with measure() of a timer or collector");
	return NULL;
}

static void series_dealloc(PyObject *self)
{
	struct series *series = (struct series *)self;
	PyTypeObject *type = Py_TYPE(self);

	if (series->open)
		open_forget(series);
	series_clear(series);
	Py_CLEAR(series->name);
	Py_CLEAR(series->device);
	type->tp_free(self);
	Py_DECREF(type);
}

static PyObject *series_enter(PyObject *self, PyObject *unused)
{
	(void)unused;
	if (KYMO__UNLIKELY(open_begin((struct series *)self, frame_current())))
		return NULL;
	Py_INCREF(self);
	return self;
}

static PyObject *leave(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	(void)args, (void)count;
	if (KYMO__UNLIKELY(open_end((struct series *)self, frame_current()) < 0))
		return NULL;
	Py_RETURN_NONE; /* an exception propagates */
}

static PyObject *series_repr(PyObject *self)
{
	struct series *series = (struct series *)self;

	return PyUnicode_FromFormat("<times of %R: %llu>", series->name,
				    (unsigned long long)series->count);
}

static PyMethodDef methods[] = {
	{ "__enter__", series_enter, METH_NOARGS, "Begins a measurement." },
	{ "__exit__", (PyCFunction)(void (*)(void))leave, METH_FASTCALL,
	  "Ends the measurement; exceptions propagate." },
	{ NULL },
};

static PyMemberDef members[] = {
	{ "name", T_OBJECT_EX, offsetof(struct series, name), READONLY, "as it is recorded" },
	{ NULL },
};

static PyType_Slot slots[] = {
	{ Py_tp_doc, "A context manager, returned by measure(). One object serves any number of\n"
		     "uses at once, in threads, recursion and generators." },
	{ Py_tp_new, refuse_new },
	{ Py_tp_dealloc, series_dealloc },
	{ Py_tp_repr, series_repr },
	{ Py_tp_methods, methods },
	{ Py_tp_members, members },
	{ 0, NULL },
};

PyType_Spec series_spec = {
	.name = "kymo._metrics.Series",
	.basicsize = sizeof(struct series),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = slots,
};
