/*
 * sys.monitoring, 3.12 and later. Tool 4 has no assigned purpose; 2 is the profiler's, which the
 * program's cProfile needs. Callbacks are objects with only a vectorcall, which the interpreter
 * calls directly.
 */
#include "calls.h"

#if PY_VERSION_HEX >= 0x030C0000

struct callback {
	PyObject_HEAD vectorcallfunc vectorcall;
};

static PyTypeObject callback_type = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "kymo._trace.callback",
	.tp_basicsize = sizeof(struct callback),
	.tp_vectorcall_offset = offsetof(struct callback, vectorcall),
	.tp_call = PyVectorcall_Call,
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
};

/* ---- events ------------------------------------------------------------------------------ */

/* From 3.13 on, extensions may send events with any object in place of a code object. */
static bool is_code(PyObject *object)
{
	return KYMO__LIKELY(PyCode_Check(object));
}

static PyObject *begin(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	struct calls *calls = is_code(args[0]) ? calls_get() : NULL;

	(void)self, (void)count, (void)names;
	if (KYMO__LIKELY(calls != NULL))
		calls_begin_code(calls, args[0], (PyCodeObject *)args[0]);
	Py_RETURN_NONE;
}

static PyObject *end(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	struct calls *calls = calls_mine;

	(void)self, (void)count, (void)names;
	if (KYMO__LIKELY(calls && !calls->busy) && is_code(args[0]))
		calls_end(calls, args[0]);
	Py_RETURN_NONE;
}

static PyObject *line(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	struct calls *calls = is_code(args[0]) ? calls_get() : NULL;

	(void)self, (void)count, (void)names;
	if (calls)
		calls_line(calls, args[0], (PyCodeObject *)args[0], (int)PyLong_AsLong(args[1]));
	Py_RETURN_NONE;
}

/* No LINE event is sent when a generator resumes within a line. */
static PyObject *resume(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	PyCodeObject *code = (PyCodeObject *)args[0];
	struct calls *calls = is_code(args[0]) ? calls_get() : NULL;

	(void)self, (void)count, (void)names;
	if (KYMO__LIKELY(calls != NULL))
		calls_begin_code(calls, code, code);
	if (calls && trace.lines)
		calls_line(calls, code, code, PyCode_Addr2Line(code, (int)PyLong_AsLong(args[1])));
	Py_RETURN_NONE;
}

static PyObject *c_begin(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	const void *method = codes_c_method(args[2]);
	struct calls *calls = method ? calls_get() : NULL;

	(void)self, (void)count, (void)names;
	if (calls)
		calls_begin_c(calls, method, args[2]);
	Py_RETURN_NONE;
}

static PyObject *c_end(PyObject *self, PyObject *const *args, size_t count, PyObject *names)
{
	const void *method = codes_c_method(args[2]);

	(void)self, (void)count, (void)names;
	if (method && calls_mine && !calls_mine->busy)
		calls_end_c(calls_mine, method);
	Py_RETURN_NONE;
}

enum when { ALWAYS, WITH_LINES, WITH_C_CALLS };

static struct event {
	const char *name;
	enum when when;
	struct callback callback;
} events[] = {
#define CALLBACK(function) \
	{ \
		PyObject_HEAD_INIT(&callback_type) function \
	}
	{ "PY_START", ALWAYS, CALLBACK(begin) },       { "PY_RESUME", ALWAYS, CALLBACK(resume) },
	{ "PY_THROW", ALWAYS, CALLBACK(resume) },      { "PY_RETURN", ALWAYS, CALLBACK(end) },
	{ "PY_YIELD", ALWAYS, CALLBACK(end) },	       { "PY_UNWIND", ALWAYS, CALLBACK(end) },
	{ "LINE", WITH_LINES, CALLBACK(line) },	       { "CALL", WITH_C_CALLS, CALLBACK(c_begin) },
	{ "C_RETURN", WITH_C_CALLS, CALLBACK(c_end) }, { "C_RAISE", WITH_C_CALLS, CALLBACK(c_end) },
};
#define EVENT_COUNT (sizeof(events) / sizeof(events[0]))

static bool wanted(const struct event *event)
{
	return event->when == ALWAYS || (event->when == WITH_LINES && trace.lines) ||
	       (event->when == WITH_C_CALLS && trace.c_calls);
}

/* ---- on and off -------------------------------------------------------------------------- */

static int tool = -1; /* ours; -1: none */

static PyObject *monitoring(void)
{
	return PySys_GetObject("monitoring"); /* borrowed */
}

static bool call(const char *method, const char *format, ...)
{
	PyObject *callable = monitoring() ? PyObject_GetAttrString(monitoring(), method) : NULL;
	PyObject *args = NULL, *result = NULL;
	va_list list;

	va_start(list, format);
	if (callable)
		args = Py_VaBuildValue(format, list);
	va_end(list);
	if (args)
		result = PyObject_Call(callable, args, NULL);
	Py_XDECREF(args);
	Py_XDECREF(callable);
	PyErr_Clear();
	Py_XDECREF(result);
	return result != NULL;
}

static int event_bit(const char *name)
{
	PyObject *list = monitoring() ? PyObject_GetAttrString(monitoring(), "events") : NULL;
	PyObject *bit = list ? PyObject_GetAttrString(list, name) : NULL;
	int value = bit ? (int)PyLong_AsLong(bit) : 0;

	Py_XDECREF(bit);
	Py_XDECREF(list);
	PyErr_Clear();
	return value > 0 ? value : 0;
}

/* 4, else 3: the other numbers are assigned to other tools. */
static int take_tool(void)
{
	for (int id = 4; id >= 3; id--)
		if (call("use_tool_id", "(is)", id, "kymo"))
			return id;
	return -1;
}

static void disarm(void)
{
	if (tool < 0)
		return;
	call("set_events", "(ii)", tool, 0);
	for (size_t i = 0; i < EVENT_COUNT; i++)
		call("register_callback", "(iiO)", tool, event_bit(events[i].name), Py_None);
	call("free_tool_id", "(i)", tool);
	tool = -1;
}

static int arm(void)
{
	int mask = 0;

	if (PyType_Ready(&callback_type))
		return -1;
	tool = take_tool();
	if (tool < 0)
		return -1;
	for (size_t i = 0; i < EVENT_COUNT; i++) {
		int bit = event_bit(events[i].name);

		if (!wanted(&events[i]))
			continue;
		mask |= bit;
		call("register_callback", "(iiO)", tool, bit, &events[i].callback);
	}
	if (call("set_events", "(ii)", tool, mask))
		return 0;
	disarm();
	return -1;
}

const struct mechanism mechanism_monitoring = { "monitoring", arm, disarm };

#endif
