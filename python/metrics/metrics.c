#include "metrics.h"

#include <string.h>
#include <structmember.h>

#include "../core/text.h"

#define NAMES_MAX 4096 /* bounds the memory of programs that generate names */
#define OTHERS "(other names)"
#define NAMES_SHOWN 8 /* in metrics_repr() */

struct metrics {
	PyObject_HEAD PyObject *times; /* name -> Series */
	PyObject *values; /* name -> Value */
	PyObject *device; /* for its series; NULL: the host's clock */
	uint64_t owner;
	uint32_t instance;
};

/* ---- names --------------------------------------------------------------------------------- */

uint32_t name_id(PyObject *name, enum kymo_source source, uint32_t instance)
{
	struct text text;
	uint32_t id = 0;

	if (text_take(name, &text))
		PyErr_Clear();
	else
		id = kymo_name_full(text.bytes, (size_t)text.size, NULL, 0, 0, source, instance);
	text_release(&text);
	return id;
}

/* Names a thread that has no rows yet as Python does. */
static inline void metrics_ready_thread(void)
{
	if (KYMO__UNLIKELY(!kymo__lane) && kymo_enabled())
		text_introduce_thread();
}

static PyObject *metrics_make(struct metrics *metrics, bool time, PyObject *name)
{
	return time ? series_new(name, metrics->owner, metrics->instance, metrics->device)
		    : value_new(name, metrics->instance);
}

/* The Series or Value of a name, borrowed; created if new. */
static PyObject *of_name(struct metrics *metrics, bool time, PyObject *name)
{
	PyObject *dict = time ? metrics->times : metrics->values, *found, *others = NULL;

	if (KYMO__UNLIKELY(!PyUnicode_Check(name))) {
		PyErr_Format(PyExc_TypeError, "%.100s: name must be a str, not %.100s",
			     Py_TYPE(metrics)->tp_name, Py_TYPE(name)->tp_name);
		return NULL;
	}
	found = PyDict_GetItemWithError(dict, name);
	if (KYMO__LIKELY(found != NULL) || PyErr_Occurred())
		return found;
	if (PyDict_GET_SIZE(dict) >= NAMES_MAX) {
		others = PyUnicode_FromString(OTHERS);
		found = others ? PyDict_GetItemWithError(dict, others) : NULL;
		name = others;
	}
	if (!found && name && !PyErr_Occurred()) {
		found = metrics_make(metrics, time, name);
		if (found && PyDict_SetItem(dict, name, found))
			Py_CLEAR(found);
		Py_XDECREF(found); /* owned by the dict */
	}
	Py_XDECREF(others);
	return found;
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* Fills out[] by position or name; -1 and TypeError. */
static int metrics_take(const char *const *words, int count, PyObject *const *args,
			Py_ssize_t positional, PyObject *keywords, PyObject **out)
{
	Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
	int taken = 0;

	for (int i = 0; i < count; i++)
		out[i] = i < positional ? args[i] : NULL;
	for (Py_ssize_t k = 0; k < named; k++)
		for (int i = 0; i < count; i++)
			if (!out[i] && !PyUnicode_CompareWithASCIIString(
					       PyTuple_GET_ITEM(keywords, k), words[i])) {
				out[i] = args[positional + k];
				taken++;
				break;
			}
	if (positional <= count && taken == named && positional + named == count)
		return 0;
	PyErr_Format(PyExc_TypeError, count == 1 ? "expected one argument: the name"
						 : "record takes two arguments: name and value");
	return -1;
}

static const char *const words[] = { "name", "value" };

/* A method with one argument, a name. */
#define BY_NAME(function) \
	static PyObject *function##_by(PyObject *self, PyObject *const *args, Py_ssize_t count, \
				       PyObject *keywords) \
	{ \
		PyObject *name; \
\
		return metrics_take(words, 1, args, count, keywords, &name) \
			       ? NULL \
			       : function(self, name); \
	}

/* ---- times --------------------------------------------------------------------------------- */

static PyObject *metrics_measure(PyObject *self, PyObject *name)
{
	PyObject *series = of_name((struct metrics *)self, true, name);

	metrics_ready_thread();
	Py_XINCREF(series);
	return series;
}

BY_NAME(metrics_measure)

static PyObject *metrics_start(PyObject *self, PyObject *name)
{
	PyObject *series = metrics_measure(self, name);
	int rc = series ? open_begin((struct series *)series, OPEN_BY_NAME) : -1;

	Py_XDECREF(series);
	if (rc)
		return NULL;
	Py_RETURN_NONE;
}

BY_NAME(metrics_start)

static PyObject *was_not_started(PyObject *self, PyObject *name)
{
	return PyErr_Format(PyExc_ValueError, "%.100s: stop(%R) without a matching start(%R)",
			    _PyType_Name(Py_TYPE(self)), name, name);
}

static PyObject *metrics_stop(PyObject *self, PyObject *name)
{
	struct metrics *metrics = (struct metrics *)self;
	PyObject *series = PyUnicode_Check(name) ? PyDict_GetItemWithError(metrics->times, name)
						 : NULL;
	int rc;

	if (!series)
		return PyErr_Occurred() ? NULL : was_not_started(self, name);
	Py_INCREF(series);
	rc = open_end((struct series *)series, OPEN_BY_NAME);
	Py_DECREF(series);
	if (rc > 0)
		return was_not_started(self, name);
	if (rc)
		return NULL;
	Py_RETURN_NONE;
}

BY_NAME(metrics_stop)

static void complain_unmeasured(PyObject *self, PyObject *name)
{
	PyObject *names = PyDict_Keys(((struct metrics *)self)->times);

	if (names)
		PyErr_Format(PyExc_ValueError, "%.100s: no measurement is named %R; there are %R",
			     _PyType_Name(Py_TYPE(self)), name, names);
	Py_XDECREF(names);
}

/* A series that has samples, settled; a new reference. */
static struct series *measured(PyObject *self, PyObject *name)
{
	struct metrics *metrics = (struct metrics *)self;
	struct series *series = NULL;

	if (PyUnicode_Check(name))
		series = (struct series *)PyDict_GetItemWithError(metrics->times, name);
	if (PyErr_Occurred())
		return NULL;
	if (series) {
		Py_INCREF(series);
		series_current(series);
		if (series_settle(series, true))
			Py_CLEAR(series);
		else if (series->count)
			return series;
	}
	Py_XDECREF(series);
	if (!PyErr_Occurred())
		complain_unmeasured(self, name);
	return NULL;
}

static PyObject *get_elapsed(PyObject *self, PyObject *name)
{
	struct series *series = measured(self, name);
	double ms;

	if (!series)
		return NULL;
	ms = (double)clock_span_ns(metrics_rate(), series->last) * 1e-6;
	Py_DECREF(series);
	return PyFloat_FromDouble(ms);
}

BY_NAME(get_elapsed)

static PyObject *times(PyObject *self, PyObject *name)
{
	struct series *series = measured(self, name);
	PyObject *result = series ? series_stats(series) : NULL;

	Py_XDECREF(series);
	return result;
}

BY_NAME(times)

/* ---- values -------------------------------------------------------------------------------- */

/* A number too large for a float is infinite, not an error. */
static int metrics_take_double(PyObject *value, double *out)
{
	*out = PyFloat_AsDouble(value);
	if (*out != -1.0 || !PyErr_Occurred())
		return 0;
	if (!PyErr_ExceptionMatches(PyExc_OverflowError) || !PyLong_Check(value))
		return -1;
	PyErr_Clear();
	*out = PyObject_RichCompareBool(value, Py_False, Py_LT) == 1 ? -Py_HUGE_VAL : Py_HUGE_VAL;
	return 0;
}

static PyObject *metrics_record(PyObject *self, PyObject *const *args, Py_ssize_t count,
				PyObject *keywords)
{
	PyObject *given[2], *value;
	double number;

	if (metrics_take(words, 2, args, count, keywords, given) ||
	    metrics_take_double(given[1], &number))
		return NULL;
	value = of_name((struct metrics *)self, false, given[0]);
	if (!value)
		return NULL;
	metrics_ready_thread();
	value_add((struct value *)value, number);
	Py_RETURN_NONE;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static PyObject *stats_of(PyObject *object)
{
	struct series *series = (struct series *)object;

	if (Py_TYPE(object) == value_type) {
		value_current((struct value *)object);
		return value_stats((struct value *)object);
	}
	series_current(series);
	return series_settle(series, true) ? NULL : series_stats(series);
}

static uint64_t count_of(PyObject *object)
{
	return Py_TYPE(object) == value_type ? ((struct value *)object)->count
					     : ((struct series *)object)->count;
}

/* Settling may run code that measures, so this takes a copy of the list. */
static PyObject *all_of(PyObject *dict)
{
	PyObject *list = PyDict_Items(dict), *result = PyDict_New(), *stats;

	for (Py_ssize_t i = 0; list && result && i < PyList_GET_SIZE(list); i++) {
		PyObject *pair = PyList_GET_ITEM(list, i), *object = PyTuple_GET_ITEM(pair, 1);

		stats = stats_of(object);
		if (!stats ||
		    (count_of(object) && PyDict_SetItem(result, PyTuple_GET_ITEM(pair, 0), stats)))
			Py_CLEAR(result);
		Py_XDECREF(stats);
	}
	if (!list)
		Py_CLEAR(result);
	Py_XDECREF(list);
	return result;
}

/* "'load' (3), 'forward' (2)". Counted samples only: a debugger may call it, so it does not wait
   for a device. */
static PyObject *counts_of(PyObject *dict)
{
	PyObject *list = PyDict_Items(dict), *text = PyUnicode_FromString("");
	Py_ssize_t count = list ? PyList_GET_SIZE(list) : 0;

	for (Py_ssize_t i = 0; text && i < count && i < NAMES_SHOWN; i++) {
		PyObject *pair = PyList_GET_ITEM(list, i), *object = PyTuple_GET_ITEM(pair, 1);

		Py_SETREF(text, PyUnicode_FromFormat("%U%s%R (%llu)", text, i ? ", " : "",
						     PyTuple_GET_ITEM(pair, 0),
						     (unsigned long long)count_of(object)));
	}
	if (text && count > NAMES_SHOWN)
		Py_SETREF(text, PyUnicode_FromFormat("%U and %zd more", text, count - NAMES_SHOWN));
	if (!list)
		Py_CLEAR(text);
	Py_XDECREF(list);
	return text;
}

/* <MetricsCollector: times 'iteration' (3); values 'batch_size' (3), 'loss' (3)> */
static PyObject *metrics_repr(PyObject *self)
{
	const struct metrics *metrics = (const struct metrics *)self;
	PyObject *times = counts_of(metrics->times);
	PyObject *values = times ? counts_of(metrics->values) : NULL, *text = NULL;
	bool timed = times && PyUnicode_GET_LENGTH(times);
	bool valued = values && PyUnicode_GET_LENGTH(values);

	if (values)
		text = PyUnicode_FromFormat("<%.100s: %s%U%s%s%U>", _PyType_Name(Py_TYPE(self)),
					    timed    ? "times "
					    : valued ? ""
						     : "nothing yet",
					    times, timed && valued ? "; " : "",
					    valued ? "values " : "", values);
	Py_XDECREF(times);
	Py_XDECREF(values);
	return text;
}

static PyObject *all_times(PyObject *self, PyObject *unused)
{
	(void)unused;
	return all_of(((struct metrics *)self)->times);
}

static PyObject *all_values(PyObject *self, PyObject *unused)
{
	(void)unused;
	return all_of(((struct metrics *)self)->values);
}

static PyObject *samples(PyObject *self, PyObject *name)
{
	struct metrics *metrics = (struct metrics *)self;
	PyObject *series = PyDict_GetItemWithError(metrics->times, name), *value, *list = NULL;
	const struct batches *batches = NULL;
	double scale = 1;

	if (series) {
		batches = &((struct series *)series)->batches;
		scale = metrics_ms_per_tick();
	} else if ((value = PyDict_GetItemWithError(metrics->values, name))) {
		batches = &((struct value *)value)->batches;
	}
	if (!batches)
		return PyErr_Occurred() ? NULL : Py_BuildValue("([]i)", 1);
	list = batches_list(batches, scale);
	return list ? Py_BuildValue("(NK)", list, (unsigned long long)batches->size) : NULL;
}

static PyObject *value_samples(PyObject *self, PyObject *name)
{
	PyObject *value = PyDict_GetItemWithError(((struct metrics *)self)->values, name), *list;

	if (!value)
		return PyErr_Occurred() ? NULL : Py_BuildValue("([]i)", 1);
	list = batches_list(&((struct value *)value)->batches, 1);
	return list ? Py_BuildValue("(NK)", list,
				    (unsigned long long)((struct value *)value)->batches.size)
		    : NULL;
}

/* Widens [first, last] to the start of the first sample and the end of the last. */
static void metrics_widen(PyObject *dict, uint64_t *first, uint64_t *last)
{
	PyObject *name, *object;
	Py_ssize_t at = 0;

	while (PyDict_Next(dict, &at, &name, &object)) {
		const struct series *series = (struct series *)object;
		const struct value *value = (struct value *)object;
		bool time = Py_TYPE(object) == series_type;
		uint64_t from = time ? series->first_start : value->first_at;
		uint64_t to = time ? series->last_end : value->last_at;

		if (!count_of(object))
			continue;
		*first = from < *first ? from : *first;
		*last = to > *last ? to : *last;
	}
}

static PyObject *wall_ms(PyObject *self, PyObject *unused)
{
	const struct metrics *metrics = (struct metrics *)self;
	uint64_t first = UINT64_MAX, last = 0;

	(void)unused;
	metrics_widen(metrics->times, &first, &last);
	metrics_widen(metrics->values, &first, &last);
	return PyFloat_FromDouble(last > first ? (double)(last - first) * metrics_ms_per_tick()
					       : 0.0);
}

/* Lost zones of this process, of any name. */
static PyObject *dropped(PyObject *self, PyObject *unused)
{
	const struct metrics *metrics = (struct metrics *)self;
	struct kymo_totals totals = { .bytes = sizeof(totals) };
	struct kymo_region region = { 0 };
	PyObject *name, *series;
	Py_ssize_t at = 0;

	(void)unused;
	while (!region.id && PyDict_Next(metrics->times, &at, &name, &series))
		region.id = ((struct series *)series)->id;
	if (region.id)
		kymo_region_totals(&region, &totals);
	return PyLong_FromUnsignedLongLong(totals.dropped);
}

/* ---- the object ---------------------------------------------------------------------------- */

static PyObject *metrics_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	static uint64_t owners;
	struct metrics *metrics = (struct metrics *)type->tp_alloc(type, 0);

	(void)args, (void)keywords; /* for __init__ of subclasses */
	if (!metrics)
		return NULL;
	metrics_begin();
	metrics->owner = ++owners;
	metrics->instance = instance_take();
	metrics->times = PyDict_New();
	metrics->values = PyDict_New();
	if (!metrics->times || !metrics->values)
		Py_CLEAR(metrics);
	return (PyObject *)metrics;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
	struct metrics *metrics = (struct metrics *)self;

	Py_VISIT(Py_TYPE(self));
	Py_VISIT(metrics->times);
	Py_VISIT(metrics->values);
	Py_VISIT(metrics->device);
	return 0;
}

static int metrics_clear(PyObject *self)
{
	struct metrics *metrics = (struct metrics *)self;
	PyObject *name, *series;
	Py_ssize_t at = 0;

	/* A pending device measurement may refer to the series itself. */
	while (metrics->times && PyDict_Next(metrics->times, &at, &name, &series))
		Py_CLEAR(((struct series *)series)->pending);
	Py_CLEAR(metrics->times);
	Py_CLEAR(metrics->values);
	Py_CLEAR(metrics->device);
	return 0;
}

static void metrics_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	PyObject_GC_UnTrack(self);
	metrics_clear(self);
	instance_give(((struct metrics *)self)->instance);
	type->tp_free(self);
	Py_DECREF(type);
}

#define WITH_KEYWORDS(function) \
	(PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS

static PyMethodDef metrics_methods[] = {
	{ "measure", WITH_KEYWORDS(metrics_measure_by),
	  "measure($self, /, name)\n--\n\nA context manager that measures its block." },
	{ "start", WITH_KEYWORDS(metrics_start_by),
	  "start($self, /, name)\n--\n\nBegins a measurement." },
	{ "stop", WITH_KEYWORDS(metrics_stop_by),
	  "stop($self, /, name)\n--\n\nEnds the newest measurement that start(name) began, on this "
	  "thread or else another;\nValueError where there is none." },
	{ "get_elapsed", WITH_KEYWORDS(get_elapsed_by),
	  "get_elapsed($self, /, name)\n--\n\nThe last measurement of that name, in ms. ValueError "
	  "where there is none." },
	{ "record", WITH_KEYWORDS(metrics_record),
	  "record($self, /, name, value)\n--\n\nRecords a value." },
	{ "times", WITH_KEYWORDS(times_by),
	  "times($self, /, name)\n--\n\nAll about one name, in ms." },
	{ "all_times", all_times, METH_NOARGS,
	  "all_times($self, /)\n--\n\n{name: times(name)} of those with samples." },
	{ "all_values", all_values, METH_NOARGS, "{name: dict} of values, as all_times()." },
	{ "samples", samples, METH_O,
	  "The samples of a time (ms) or value, in order, as at most 1,024 means of so many." },
	{ "wall_ms", wall_ms, METH_NOARGS,
	  "wall_ms($self, /)\n--\n\nTime from the start of the first sample to the end of the "
	  "last." },
	{ "dropped", dropped, METH_NOARGS,
	  "dropped($self, /)\n--\n\nNumber of zones that this process dropped, of any name." },
	{ "value_samples", value_samples, METH_O, "The same of a value alone." },
	{ NULL },
};

static PyMemberDef metrics_members[] = {
	{ "instance", T_UINT, offsetof(struct metrics, instance), READONLY,
	  "its number in the column `instance` of the recording; 0: none was free" },
	{ "_device", T_OBJECT, offsetof(struct metrics, device), 0, NULL },
	{ NULL },
};

static PyType_Slot metrics_slots[] = {
	{ Py_tp_doc, "Times and values by name, exact for any number of samples." },
	{ Py_tp_new, metrics_new },
	{ Py_tp_repr, metrics_repr },
	{ Py_tp_dealloc, metrics_dealloc },
	{ Py_tp_traverse, traverse },
	{ Py_tp_clear, metrics_clear },
	{ Py_tp_methods, metrics_methods },
	{ Py_tp_members, metrics_members },
	{ 0, NULL },
};

static PyType_Spec metrics_spec = {
	.name = "kymo._metrics.Metrics",
	.basicsize = sizeof(struct metrics),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = metrics_slots,
};

/* ---- the module ------------------------------------------------------------------------------ */

static PyMethodDef module_methods[] = {
	{ "resident", resident, METH_NOARGS,
	  "resident($module, /)\n--\n\nResident memory of this process in bytes, now and at its "
	  "peak." },
	{ "judge", judge, METH_O,
	  "judge($module, rows, /)\n--\n\nFor each (values of a, values of b, weight): (low, high, "
	  "p, p corrected for all rows,\nthe change that could have been seen, significant)." },
	{ "warmup", warmup, METH_O,
	  "warmup($module, values, /)\n--\n\nThe number of leading values that are warm-up." },
	{ NULL },
};

static int metrics_add(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **out)
{
	PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
	int rc = type ? PyModule_AddObjectRef(module, name, type) : -1;

	if (out)
		*out = (PyTypeObject *)
			type; /* never freed: samples may be open when the module goes */
	else
		Py_XDECREF(type);
	return rc;
}

PyMODINIT_FUNC PyInit__metrics(void)
{
	static struct PyModuleDef def = {
		PyModuleDef_HEAD_INIT,
		.m_name = "kymo._metrics",
		.m_doc = "Internals of kymo.profiler; import kymo.profiler instead.",
		.m_size = -1,
		.m_methods = module_methods,
	};
	PyObject *module;

	if (open_init()) {
		PyErr_SetString(PyExc_ImportError, "kymo: no thread key left");
		return NULL;
	}
	module = PyModule_Create(&def);
	if (module && (metrics_add(module, "Series", &series_spec, &series_type) ||
		       metrics_add(module, "Value", &value_spec, &value_type) ||
		       metrics_add(module, "Queues", &queues_spec, NULL) ||
		       metrics_add(module, "Metrics", &metrics_spec, NULL)))
		Py_CLEAR(module);
	return module;
}
